// The mean of a measure over all queries along a ray: the queries' jumps, sorted and added up.
#pragma once

#include "sweep.hpp"
#include "threads.hpp"

namespace exactrank {

struct Profile {
    std::vector<double> breakpoints, values, at;
};

// A sum whose rounding errors are added up beside it (Neumaier 1974).
class ExactSum {
public:
    void add(double x) {
        const double sum = sum_ + x;
        rest_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
        sum_ = sum;
    }
    double value() const { return sum_ + rest_; }

private:
    double sum_ = 0, rest_ = 0;
};

// Sorts the lists one by one, then merges neighbours until one is left.
inline std::vector<Jump> merged(std::vector<std::vector<Jump>>& lists, int threads) {
    auto earlier = [](const Jump& a, const Jump& b) { return a.at < b.at; };
    parallel_for(lists.size(), threads, [&](std::size_t i) { std::stable_sort(lists[i].begin(), lists[i].end(), breathing(earlier)); });
    for (std::size_t apart = 1; apart < lists.size(); apart *= 2)
        parallel_for((lists.size() + 2 * apart - 1) / (2 * apart), threads, [&](std::size_t i) {
            const std::size_t a = 2 * apart * i, b = a + apart;
            if (b >= lists.size()) return;
            std::vector<Jump> both(lists[a].size() + lists[b].size());
            std::merge(lists[a].begin(), lists[a].end(), lists[b].begin(), lists[b].end(), both.begin(), breathing(earlier));
            lists[a].swap(both);
            lists[b] = {};
        });
    return lists.empty() ? std::vector<Jump>{} : std::move(lists[0]);
}

// Adds the jumps up from the left so that the value at 0 is `here`.
inline Profile summed(const std::vector<Jump>& jumps, double here) {
    Profile profile;
    ExactSum running;
    running.add(here);
    for (const Jump& jump : jumps) {
        if (jump.at > 0) break;
        running.add(-jump.to);
        if (jump.at < 0) running.add(-jump.from);
    }
    profile.values.push_back(running.value());
    for (std::size_t first = 0, last; first < jumps.size(); first = last) {
        for (last = first; last < jumps.size() && jumps[last].at == jumps[first].at; ++last) running.add(jumps[last].to);
        const double there = running.value();
        for (std::size_t i = first; i < last; ++i) running.add(jumps[i].from);
        profile.breakpoints.push_back(jumps[first].at);
        profile.at.push_back(there);
        profile.values.push_back(running.value());
    }
    return profile;
}

// The jumps of each query by itself, one query after the other, and each query's value at 0.
struct QueryJumps {
    std::vector<Jump> jumps;
    std::vector<std::int64_t> counts;
    std::vector<double> here;
};

inline QueryJumps query_jumps(const Ray& ray, const BoundMeasure& measure, int threads) {
    const std::vector<std::size_t> starts = query_blocks(measure.indptr);
    std::vector<std::vector<Jump>> parts(starts.size() - 1);
    QueryJumps found{{}, std::vector<std::int64_t>(measure.queries()), std::vector<double>(measure.queries())};
    parallel_for(parts.size(), threads, [&](std::size_t b) {
        Sweep sweep(ray, measure);
        for (std::size_t q = starts[b]; q < starts[b + 1]; ++q) {
            const std::size_t first = parts[b].size();
            found.here[q] = sweep.query(q, parts[b]);
            found.counts[q] = static_cast<std::int64_t>(parts[b].size() - first);
        }
    });
    for (const auto& part : parts) found.jumps.insert(found.jumps.end(), part.begin(), part.end());
    return found;
}

// The weighted mean; queries whose value is NaN are left out.
inline Profile profile_of(const Ray& ray, const BoundMeasure& measure, int threads) {
    const std::vector<std::size_t> starts = query_blocks(measure.indptr);
    const std::span<const double> weight = measure.weight;
    const std::size_t queries = measure.queries();
    std::vector<std::vector<Jump>> jumps(starts.size() - 1);
    std::vector<double> here(queries);
    parallel_for(jumps.size(), threads, [&](std::size_t b) {
        Sweep sweep(ray, measure);
        for (std::size_t q = starts[b]; q < starts[b + 1]; ++q) {
            const std::size_t first = jumps[b].size();
            if (weight[q] == 0) continue;
            here[q] = sweep.query(q, jumps[b]);
            for (std::size_t i = first; i < jumps[b].size(); ++i) jumps[b][i].to *= weight[q], jumps[b][i].from *= weight[q];
        }
    });
    ExactSum total, sum;
    for (std::size_t q = 0; q < queries; ++q)
        if (!std::isnan(here[q])) total.add(weight[q]), sum.add(weight[q] * here[q]);
    Profile profile = summed(merged(jumps, threads), sum.value());
    for (auto* values : {&profile.values, &profile.at})
        for (double& value : *values) value /= total.value();
    return profile;
}

}  // namespace exactrank
