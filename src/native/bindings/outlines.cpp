// What parts of the queries know of a step function along a line, and the best interval of their sum.
#include "bindings/queries.hpp"
#include "line_search/outline.hpp"

namespace exactrank {

namespace {

Bins checked_bins(const In<std::uint32_t>& bins, int shift) {
    require(shift >= 0 && shift <= EventHistogram::shift, "shift must be of bins");
    const auto numbers = spanned(bins);
    require(std::is_sorted(numbers.begin(), numbers.end()), "bins must rise");
    require(numbers.empty() || numbers.back() >> (EventHistogram::shift - shift) < 2 * EventHistogram::half, "bins must be numbers of bins");
    return {shift, numbers};
}

Sums checked_sums(const In<std::uint32_t>& numbers, const In<std::int64_t>& change, const In<std::int64_t>& up, int shift) {
    require_length("change", change.size(), numbers.size());
    require_length("up", up.size(), numbers.size());
    Sums sums(numbers.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
        require(numbers(i) >> (EventHistogram::shift - shift) < 2 * EventHistogram::half, "numbers must be of bins");
        sums[i] = {numbers(i), {change(i), up(i)}};
    }
    return sums;
}

std::vector<FixedEvent> checked_events(const In<double>& at, const In<std::int64_t>& change) {
    require_length("change", change.size(), at.size());
    std::vector<FixedEvent> events(at.size());
    for (std::size_t i = 0; i < events.size(); ++i) events[i] = {at(i), change(i)};
    return events;
}

nb::tuple arrays(const Sums& sums) {
    std::vector<std::uint32_t> numbers;
    std::vector<std::int64_t> change, up;
    for (const auto& [number, bin] : sums) numbers.push_back(number), change.push_back(bin.change), up.push_back(bin.up);
    return nb::make_tuple(array(std::move(numbers)), array(std::move(change)), array(std::move(up)));
}

// The events in some bins, or where they are more than `most` their sums in bins of the shift `finer`; and the events beside an edge.
nb::tuple close(Outline& self, In<std::uint32_t> bins, int shift, std::uint32_t edge, std::size_t most, int finer, int threads) {
    const Bins wanted = checked_bins(bins, shift);
    require(edge <= 2 * EventHistogram::half, "edge must be the number of a bin, or one more");
    require(finer >= 0 && finer <= shift, "finer must be a shift of narrower bins");
    std::vector<FixedEvent> events;
    std::pair<double, double> beside;
    Sums sums;
    bool many = false;
    {
        nb::gil_scoped_release release;
        beside = self.beside(edge, threads);
        events = self.events(wanted, threads);
        many = events.size() > most && finer < shift;
        if (many) sums = sums_of(events, finer);
    }
    std::vector<double> at;
    std::vector<std::int64_t> change;
    for (const FixedEvent& event : events)
        if (!many) at.push_back(event.at), change.push_back(event.change);
    return nb::make_tuple(nb::make_tuple(array(std::move(at)), array(std::move(change))), arrays(sums), beside.first, beside.second);
}

void make_best_interval(BestInterval* self, In<std::uint32_t> numbers, In<std::int64_t> change, In<std::int64_t> up, std::int64_t left,
                        std::optional<std::int64_t> at_zero, double peak, double low, double high) {
    new (self) BestInterval(added_up(checked_sums(numbers, change, up, EventHistogram::shift)), left, at_zero, FixedPoint(peak), low, high);
}

// The sums of some parts in narrower bins, and the events of others.
void narrow_down(BestInterval& self, int shift, In<std::uint32_t> numbers, In<std::int64_t> change, In<std::int64_t> up, In<double> at,
                 In<std::int64_t> changes) {
    require(shift >= 0 && shift < self.shift(), "shift must be of narrower bins");
    Sums sums = checked_sums(numbers, change, up, shift);
    const Sums others = sums_of(checked_events(at, changes), shift);
    sums.insert(sums.end(), others.begin(), others.end());
    self.narrow(shift, added_up(std::move(sums)));
}

nb::tuple best(const BestInterval& self, In<double> at, In<std::int64_t> change, double below, double above, double peak) {
    const FixedBest found = self.inside(checked_events(at, change)).value_or(self.at_edge(below, above));
    return nb::make_tuple(found.low, found.high, FixedPoint(peak).back(found.value));
}

}  // namespace

void bind_outlines(nb::module_& m) {
    nb::class_<Outline>(m, "Outline")
        .def_prop_ro("sums", [](const Outline& self) { return arrays(self.sums()); })
        .def_prop_ro("left", &Outline::left)
        .def_prop_ro("right", &Outline::right)
        .def_prop_ro("ties", &Outline::ties)
        .def("close", &close, "bins"_a, "shift"_a, "edge"_a, "most"_a, "finer"_a, "threads"_a);
    nb::class_<BestInterval>(m, "BestInterval")
        .def("__init__", &make_best_interval, "numbers"_a, "change"_a, "up"_a, "left"_a, "at_zero"_a.none(), "peak"_a, "low"_a, "high"_a)
        .def_prop_ro(
            "bins", [](const BestInterval& self) { return array(self.bins()); }, nb::rv_policy::move)
        .def_prop_ro("shift", &BestInterval::shift)
        .def_prop_ro("edge", &BestInterval::edge)
        .def("narrow", &narrow_down, "shift"_a, "numbers"_a, "change"_a, "up"_a, "at"_a, "changes"_a)
        .def("best", &best, "at"_a, "change"_a, "below"_a, "above"_a, "peak"_a);
    m.def("from_fixed", [](std::int64_t value, double peak) { return FixedPoint(peak).back(value); }, "value"_a, "peak"_a);
}

}  // namespace exactrank
