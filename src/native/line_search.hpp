// The best step along a ray for positional measures: the inner loop of DirectRank (Tan et al. 2013).
//
// As in sweep.hpp documents are lines, and the sweep goes right and left from 0; but only the best interval is wanted, so
// values at the crossings themselves are not. All crossings of the lines that matter are found at once and sorted by a
// network; then, in that order, the overtaken line loses a rank and the overtaker gains one. Where several lines meet the
// order of their exchanges does not matter: what each moves adds up to the same. Queries are merged through a histogram
// over alpha, and only the bins that can hold the optimum are sorted.
#pragma once

#include "jumping_points.hpp"
#include "kernel.hpp"
#include "ranking.hpp"
#include "threads.hpp"

namespace exactrank {

// One side of one query: the lines that matter in the order right beside 0, and their crossings.
struct SideScratch {
    std::vector<double> score, slope, worth;
    std::vector<double> end, highest, row, at;
    std::vector<std::int32_t> pair, rank, sequence;
    std::vector<Event> events;
    network::Buffer keys;

    void reserve(std::size_t n) {
        if (score.size() >= n + 8) return;
        for (auto* numbers : {&score, &slope, &worth, &end, &row}) numbers->resize(n + 8);
        rank.resize(n + 8);
    }
    void reserve_pairs(std::size_t pairs) {
        if (at.size() >= pairs) return;
        at.resize(pairs), pair.resize(pairs), sequence.resize(pairs), events.resize(pairs);
    }
};

// Keeps of n lines, in order, those that are not below `cutoff` earlier ones at the end of the ray too; returns how many.
static XR_CLONES std::int32_t keep_those_that_matter(SideScratch& side, std::int32_t n, std::int32_t cutoff) {
    if (n <= cutoff) return n;
    double *score = side.score.data(), *slope = side.slope.data(), *worth = side.worth.data(), *end = side.end.data();
    const std::int32_t room = (cutoff + 7) / 8 * 8;
    side.highest.assign(room, HUGE_VAL);
    double* highest = side.highest.data();
    std::copy(end, end + cutoff, highest);
    auto lowest = [&] {
        Doubles least = load_eight(highest);
        for (std::int32_t i = 8; i < room; i += 8) {
            const Doubles v = load_eight(highest + i);
            least = v < least ? v : least;
        }
        double found = least[0];
        for (int lane = 1; lane < 8; ++lane) found = least[lane] < found ? least[lane] : found;
        return found;
    };
    double bar = lowest();
    std::int32_t kept = cutoff;
    for (std::int32_t i = cutoff; i < n; ++i) {
        if (end[i] <= bar) continue;
        std::int32_t out = 0;
        while (highest[out] != bar) ++out;
        highest[out] = end[i];
        bar = lowest();
        score[kept] = score[i], slope[kept] = slope[i], worth[kept] = worth[i];
        ++kept;
    }
    return kept;
}

// Lists the crossings before `limit` of m lines, and in side.sequence their order; returns how many.
static XR_CLONES std::int32_t sorted_crossings(SideScratch& side, std::int32_t m, double limit) {
    side.reserve_pairs(static_cast<std::size_t>(m) * (m + 1) / 2 + 8);
    const double *score = side.score.data(), *slope = side.slope.data();
    const double last = limit * (1 - 0x1p-40);  // nothing is to be had from an interval that rounding alone leaves before the end
    double *row = side.row.data(), *at = side.at.data();
    std::int32_t *pair = side.pair.data(), *sequence = side.sequence.data(), n = 0;
    for (std::int32_t i = 0; i + 1 < m; ++i) {
        const double s = score[i], t = slope[i];
        for (std::int32_t j = i + 1; j < m; ++j) row[j] = (s - score[j]) / (slope[j] - t);
        for (std::int32_t j = i + 1; j < m; ++j) {
            at[n] = row[j];
            pair[n] = i << 16 | j;
            n += (slope[j] > t) & (row[j] < last);
        }
    }
    if (n > network_limit) {
        std::iota(sequence, sequence + n, 0);
        std::sort(sequence, sequence + n, [&](std::int32_t a, std::int32_t b) { return at[a] < at[b]; });
        return n;
    }
    // A key is the leading bits of the crossing as a float, which as integers have its order, above its number.
    const int number_bits = std::bit_width(static_cast<std::uint32_t>(n));
    const std::int32_t numbers = (1 << number_bits) - 1;
    std::int32_t* keys = side.keys.keys(n);
    for (std::int32_t c = 0; c < n; ++c) keys[c] = (std::bit_cast<std::int32_t>(static_cast<float>(at[c])) & ~numbers) | c;
    side.keys.sort_descending();
    for (std::int32_t c = 0; c < n; ++c) sequence[c] = keys[n - 1 - c] & numbers;
    for (std::int32_t c = 1; c < n; ++c)
        for (std::int32_t d = c; d > 0 && at[sequence[d]] < at[sequence[d - 1]]; --d) std::swap(sequence[d], sequence[d - 1]);
    return n;
}

// Follows the exchanges and appends the events that change the value; returns one past the last.
static XR_CLONES Event* exchanged(SideScratch& side, std::int32_t m, std::int32_t n, const double* drop, double sign, Event* out) {
    const double *worth = side.worth.data(), *at = side.at.data();
    std::int32_t* rank = side.rank.data();
    std::iota(rank, rank + m, 0);
    for (std::int32_t c = 0; c < n; ++c) {
        const std::int32_t number = side.sequence[c], i = side.pair[number] >> 16, j = side.pair[number] & 0xffff;
        const std::int32_t falls = rank[i]++, rises = --rank[j];
        *out = {sign * at[number], sign * (worth[j] * drop[rises] - worth[i] * drop[falls])};
        out += out->change != 0;
    }
    return out;
}

// The largest value on the ray and the interval that has it.
struct Best {
    double low, high, value;
};

// Values that differ by less are the same but for rounding.
constexpr double same_value = 1e-12;

// Sums of events by where they are, in 64 bins an octave on either side of 0: enough to see where the optimum can be.
class Histogram {
public:
    struct Bin {
        double change = 0, up = 0;  // of all events in it, and of those that rise
        bool empty() const { return change == 0 && up == 0; }
    };
    static constexpr int shift = 17;
    static constexpr std::uint32_t half = std::uint32_t{1} << (31 - shift);  // the bin of 0

    // Bins are in the order of alpha.
    static std::uint32_t bin_of(double at) {
        const std::uint32_t distance = std::bit_cast<std::uint32_t>(static_cast<float>(std::abs(at))) >> shift;
        return at < 0 ? half - 1 - distance : half + distance;
    }
    Histogram() : bins_(2 * std::size_t{half}) {}
    void clear() {
        for (Used& used : used_) {
            if (used.first <= used.last) std::fill(bins_.begin() + used.first, bins_.begin() + used.last + 1, Bin{});
            used = {};
        }
    }
    void add(const std::vector<Event>& events) {
        for (const Event& event : events) {
            const std::uint32_t i = bin_of(event.at);
            use(i, i);
            bins_[i].change += event.change;
            bins_[i].up += event.change > 0 ? event.change : 0.0;
        }
    }
    void add(const Histogram& other) {
        for (const Used& used : other.used_) {
            if (used.first > used.last) continue;
            use(used.first, used.last);
            for (std::uint32_t i = used.first; i <= used.last; ++i) bins_[i].change += other.bins_[i].change, bins_[i].up += other.bins_[i].up;
        }
    }
    // Calls visit(number, bin) for those that hold something, in order.
    template <class Visit>
    void each(Visit&& visit) const {
        for (const Used& used : used_)
            for (std::uint32_t i = used.first; i <= used.last && used.first <= used.last; ++i)
                if (!bins_[i].empty()) visit(i, bins_[i]);
    }

private:
    struct Used {
        std::uint32_t first = 2 * half, last = 0;
    };
    void use(std::uint32_t first, std::uint32_t last) {
        Used& used = used_[first >= half];
        used.first = std::min(used.first, first);
        used.last = std::max(used.last, last);
    }
    std::vector<Bin> bins_;
    Used used_[2];  // left and right of 0
};

// Finds the best interval of a step function that is given as lists of events, in any order, and its value left of 0.
class BestInterval {
public:
    BestInterval(const std::vector<std::vector<Event>>& events, const Histogram& histogram, double left_of_zero, int threads)
        : events_(events), threads_(threads) {
        double value = left_of_zero;
        histogram.each([&](std::uint32_t number, const Histogram::Bin& bin) { value -= number < Histogram::half ? bin.change : 0.0; });
        histogram.each([&](std::uint32_t number, const Histogram::Bin& bin) {
            bins_.push_back({number, value, value + bin.up});
            value += bin.change;
        });
        bins_.push_back({2 * Histogram::half, value, value});  // right of all
    }
    // Between low <= 0 and high >= 0; the interval beside 0 unless another is better.
    Best find(double low, double high) const {
        auto edge_at = [&](std::uint32_t number) {
            return std::partition_point(bins_.begin(), bins_.end(), [&](const Bin& bin) { return bin.number < number; }) - bins_.begin();
        };
        const std::ptrdiff_t left = edge_at(Histogram::half), right = edge_at(Histogram::half + 1);
        const std::ptrdiff_t first = low < 0 ? 0 : right, last = high > 0 ? static_cast<std::ptrdiff_t>(bins_.size()) - 1 : left;
        std::ptrdiff_t edge = high <= 0 || (low < 0 && bins_[left].before > bins_[right].before) ? left : right;
        for (std::ptrdiff_t i = first; i <= last; ++i)
            if (bins_[i].before > bins_[edge].before + same_value) edge = i;
        Best best{low, high, bins_[edge].before};
        return inside_a_bin(best) ? best : around(edge, best);
    }

private:
    struct Bin {
        std::uint32_t number;
        double before, most;  // the value left of it, and a bound on the values in it
    };

    // Is there a better interval than `best` strictly within a bin? Then it becomes that.
    bool inside_a_bin(Best& best) const {
        std::vector<Bin> promising;
        std::copy_if(bins_.begin(), bins_.end(), std::back_inserter(promising), [&](const Bin& bin) { return bin.most > best.value + same_value; });
        if (promising.empty()) return false;
        std::vector<std::uint8_t> wanted(promising.back().number - promising.front().number + 1);
        for (const Bin& bin : promising) wanted[bin.number - promising.front().number] = 1;
        std::vector<Event> close = sorted([&](const Event& event) {
            const std::uint32_t offset = Histogram::bin_of(event.at) - promising.front().number;
            return offset < wanted.size() && wanted[offset];
        });
        bool found = false;
        std::size_t i = 0;
        for (const Bin& bin : promising) {
            double value = bin.before;
            for (; i < close.size() && Histogram::bin_of(close[i].at) == bin.number; ++i) {
                value += close[i].change;
                if (value <= best.value + same_value || i + 1 == close.size() || !wide(close[i].at, close[i + 1].at)) continue;
                if (Histogram::bin_of(close[i + 1].at) != bin.number) continue;  // the bin's last: an edge, seen before
                best = {close[i].at, close[i + 1].at, value};
                found = true;
            }
        }
        return found;
    }
    static bool wide(double low, double high) { return high - low > 0x1p-40 * std::max(std::abs(low), std::abs(high)); }

    template <class Wanted>
    std::vector<Event> sorted(Wanted&& wanted) const {
        std::vector<std::vector<Event>> parts(events_.size());
        parallel_for(events_.size(), threads_, [&](std::size_t b) { std::copy_if(events_[b].begin(), events_[b].end(), std::back_inserter(parts[b]), wanted); });
        std::vector<Event> all;
        for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
        std::sort(all.begin(), all.end(), [](const Event& a, const Event& b) { return a.at != b.at ? a.at < b.at : a.change < b.change; });
        return all;
    }
    // The interval that holds the edge left of a bin.
    Best around(std::ptrdiff_t edge, Best best) const {
        std::vector<Best> parts(events_.size(), best);
        parallel_for(events_.size(), threads_, [&](std::size_t b) {
            for (const Event& event : events_[b]) {
                const bool below = Histogram::bin_of(event.at) < bins_[edge].number;
                parts[b].low = std::max(parts[b].low, below ? event.at : best.low);
                parts[b].high = std::min(parts[b].high, below ? best.high : event.at);
            }
        });
        for (const Best& part : parts) best.low = std::max(best.low, part.low), best.high = std::min(best.high, part.high);
        return best;
    }
    const std::vector<std::vector<Event>>& events_;
    int threads_;
    std::vector<Bin> bins_;
};

// All queries of a fit: what does not change from step to step is worked out once.
class LineSearch {
public:
    LineSearch(const Kernel& kernel, const double* grades, const double* tie_key, bool mark_ties, const std::int64_t* indptr, std::size_t queries,
               const double* weight)
        : indptr_(indptr, indptr + queries + 1), mark_ties_(mark_ties), cutoff_(kernel.cutoff()), starts_(query_blocks(indptr, queries)), constant_(queries) {
        const auto documents = static_cast<std::size_t>(indptr[queries]);
        if (tie_key) tie_key_.assign(tie_key, tie_key + documents);
        weigh(kernel, grades, weight);
        score_.resize(documents), worth_.resize(documents), document_.resize(documents);
        retrieved_.resize(queries), has_ties_.resize(queries), alike_.resize(queries), value_.resize(queries);
        events_.resize(starts_.size()), histograms_.resize(starts_.size() - 1);
    }
    std::size_t documents() const { return score_.size(); }
    std::size_t queries() const { return value_.size(); }

    // Takes the scores at 0 of the searches to come, and returns the value there.
    double rank(const double* scores, int threads) {
        parallel_for(starts_.size() - 1, threads, [&](std::size_t b) {
            network::Buffer keys;
            std::vector<std::uint8_t> tied;
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) rank_one(scores, q, keys, tied);
        });
        return std::accumulate(value_.begin(), value_.end(), 0.0);
    }
    template <class Slope>
    Best best(const Slope* slopes, double low, double high, int threads) {
        const std::size_t blocks = starts_.size() - 1;
        std::vector<double> right(blocks), left(blocks);
        parallel_for(blocks, threads, [&](std::size_t b) {
            SideScratch side;
            events_[b].clear();
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
                right[b] += high > 0 ? search(slopes, q, +1, high, side, events_[b]) : value_[q];
                left[b] += low < 0 ? search(slopes, q, -1, -low, side, events_[b]) : value_[q];
            }
            histograms_[b].clear();
            histograms_[b].add(events_[b]);
        });
        double right_of_zero = 0, left_of_zero = 0;
        for (std::size_t b = 0; b < blocks; ++b) right_of_zero += right[b], left_of_zero += left[b];
        const bool ties = std::any_of(has_ties_.begin(), has_ties_.end(), [](std::uint8_t t) { return t != 0; });
        events_[blocks].assign(ties, {0.0, right_of_zero - left_of_zero});
        total_.clear();
        for (std::size_t b = 0; b < blocks; ++b) total_.add(histograms_[b]);
        total_.add(events_[blocks]);
        return BestInterval(events_, total_, left_of_zero, threads).find(low, high);
    }
    // The same by Algorithm 2 as published: all jumping points of all queries, sorted and added up. Fills how many each has.
    template <class Slope>
    Best best_as_published(const Slope* slopes, int threads, std::int64_t* counts) {
        const std::size_t blocks = starts_.size() - 1;
        std::vector<double> leftmost(blocks);
        parallel_for(blocks, threads, [&](std::size_t b) {
            Lines lines;
            std::vector<std::int32_t> order;
            events_[b].clear();
            for (std::size_t q = starts_[b]; q < starts_[b + 1]; ++q) {
                const std::int64_t begin = indptr_[q], before = static_cast<std::int64_t>(events_[b].size());
                const std::int32_t n = retrieved_[q];
                lines.score.assign(score_.begin() + begin, score_.begin() + begin + n);
                lines.worth.assign(worth_.begin() + begin, worth_.begin() + begin + n);
                lines.slope.resize(n);
                for (std::int32_t p = 0; p < n; ++p) lines.slope[p] = static_cast<double>(slopes[begin + document_[begin + p]]);
                leftmost[b] += constant_[q] + jumping_points(lines, n, cutoff_, discount_.data(), drop_.data(), order, events_[b]);
                counts[q] = static_cast<std::int64_t>(events_[b].size()) - before;
            }
        });
        std::vector<Event> all;
        for (std::size_t b = 0; b < blocks; ++b) all.insert(all.end(), events_[b].begin(), events_[b].end());
        std::sort(all.begin(), all.end(), [](const Event& a, const Event& b) { return a.at < b.at; });
        double value = std::accumulate(leftmost.begin(), leftmost.end(), 0.0);
        Best best{-HUGE_VAL, all.empty() ? HUGE_VAL : all[0].at, value};
        for (std::size_t i = 0; i < all.size(); ++i) {
            value += all[i].change;
            const double high = i + 1 < all.size() ? all[i + 1].at : HUGE_VAL;
            if (value > best.value + same_value && high > all[i].at) best = {all[i].at, high, value};
        }
        return best;
    }

private:
    // What each document is worth at rank 1 (with a discount of 1) to the mean over all queries.
    void weigh(const Kernel& kernel, const double* grades, const double* weight) {
        const std::vector<double>& discount = *kernel.common_discount();
        per_rank_.resize(static_cast<std::size_t>(indptr_.back()));
        Scratch scratch;
        double total = 0;
        std::size_t longest = 0;
        for (std::size_t q = 0; q + 1 < indptr_.size(); ++q) {
            const auto count = static_cast<std::int32_t>(indptr_[q + 1] - indptr_[q]);
            const Ranked query{grades + indptr_[q], nullptr, nullptr, count, count};
            const double empty = kernel.is_empty(query) ? kernel.value(query, scratch) : 0.0;
            total += std::isnan(empty) ? 0.0 : weight[q];
            constant_[q] = std::isnan(empty) ? 0.0 : empty * weight[q];
            double* worth = per_rank_.data() + indptr_[q];
            kernel.worths(query, scratch, worth);
            for (std::int32_t i = 0; i < count; ++i) worth[i] *= weight[q];
            longest = std::max<std::size_t>(longest, count);
        }
        for (double& worth : per_rank_) worth /= total;
        for (double& constant : constant_) constant /= total;
        discount_.assign(longest + 1, 0.0);
        std::copy(discount.begin(), discount.begin() + std::min({discount.size(), longest, static_cast<std::size_t>(cutoff_)}), discount_.begin());
        drop_.resize(longest);
        for (std::size_t r = 0; r < longest; ++r) drop_[r] = discount_[r] - discount_[r + 1];
    }
    void rank_one(const double* scores, std::size_t q, network::Buffer& keys, std::vector<std::uint8_t>& tied) {
        const std::int64_t begin = indptr_[q];
        const auto count = static_cast<std::int32_t>(indptr_[q + 1] - begin);
        std::int32_t* order = document_.data() + begin;
        tied.resize(count);
        const QueryScores query{scores + begin, tie_key_.empty() ? nullptr : tie_key_.data() + begin, count};
        retrieved_[q] = static_cast<std::int32_t>(rank_query(keys, query, order, tied.data()));
        has_ties_[q] = std::any_of(tied.begin(), tied.begin() + retrieved_[q], [](std::uint8_t t) { return t != 0; });
        for (std::int32_t p = 0; p < retrieved_[q]; ++p) score_[begin + p] = query.score[order[p]], worth_[begin + p] = per_rank_[begin + order[p]];
        const double* worth = worth_.data() + begin;
        value_[q] = constant_[q];
        for (std::int32_t first = 0, last; first < retrieved_[q]; first = last) {
            for (last = first + 1; mark_ties_ && last < retrieved_[q] && tied[last];) ++last;
            const double share = std::accumulate(worth + first, worth + last, 0.0) / (last - first);
            for (std::int32_t p = first; p < last; ++p) value_[q] += share * discount_[p];
        }
        alike_[q] = std::all_of(worth, worth + retrieved_[q], [&](double w) { return w == worth[0]; });
    }
    // Appends the events of one side of a query and returns its value right beside 0.
    template <class Slope>
    double search(const Slope* slopes, std::size_t q, double sign, double limit, SideScratch& side, std::vector<Event>& events) {
        const std::int32_t n = retrieved_[q];
        const std::int64_t begin = indptr_[q];
        if (alike_[q]) return value_[q];
        side.reserve(n);
        double least = HUGE_VAL, most = -HUGE_VAL;
        for (std::int32_t p = 0; p < n; ++p) {
            const double slope = side.slope[p] = sign * static_cast<double>(slopes[begin + document_[begin + p]]);
            least = slope < least ? slope : least;
            most = slope > most ? slope : most;
        }
        if (least == most) return value_[q];
        std::copy(score_.begin() + begin, score_.begin() + begin + n, side.score.begin());
        std::copy(worth_.begin() + begin, worth_.begin() + begin + n, side.worth.begin());
        double value = value_[q];
        if (has_ties_[q]) {
            order_ties(side, n);
            value = constant_[q];
            for (std::int32_t p = 0; p < n; ++p) value += side.worth[p] * discount_[p];
        }
        for (std::int32_t p = 0; p < n; ++p) side.end[p] = std::isinf(limit) ? side.slope[p] : side.score[p] + limit * side.slope[p];
        const std::int32_t m = keep_those_that_matter(side, n, cutoff_), crossings = sorted_crossings(side, m, limit);
        events.insert(events.end(), side.events.data(), exchanged(side, m, crossings, drop_.data(), sign, side.events.data()));
        return value;
    }
    // Of equal scores the steeper comes first; lines that coincide share what they are worth where ties count as a mean.
    void order_ties(SideScratch& side, std::int32_t n) const {
        for (std::int32_t first = 0, last; first < n; first = last) {
            for (last = first + 1; last < n && side.score[last] == side.score[first];) ++last;
            for (std::int32_t p = first + 1; p < last; ++p)
                for (std::int32_t i = p; i > first && side.slope[i] > side.slope[i - 1]; --i) {
                    std::swap(side.slope[i], side.slope[i - 1]);
                    std::swap(side.worth[i], side.worth[i - 1]);
                }
            for (std::int32_t a = first, b; mark_ties_ && a < last; a = b) {
                for (b = a + 1; b < last && side.slope[b] == side.slope[a];) ++b;
                std::fill(side.worth.begin() + a, side.worth.begin() + b,
                          std::accumulate(side.worth.begin() + a, side.worth.begin() + b, 0.0) / (b - a));
            }
        }
    }
    std::vector<std::int64_t> indptr_;
    bool mark_ties_;
    std::int32_t cutoff_;
    std::vector<std::size_t> starts_;
    std::vector<double> constant_;           // of a query, whatever its order
    std::vector<double> tie_key_, per_rank_;  // by document
    std::vector<double> discount_, drop_;     // by position
    std::vector<double> score_, worth_;       // by position in the ranking at 0
    std::vector<std::int32_t> document_;
    std::vector<std::int32_t> retrieved_;
    std::vector<std::uint8_t> has_ties_, alike_;  // is the value the same whatever the order?
    std::vector<double> value_;  // at 0, by query
    std::vector<std::vector<Event>> events_;  // by block, and at last what happens at 0 itself
    std::vector<Histogram> histograms_;
    Histogram total_;
};

}  // namespace exactrank
