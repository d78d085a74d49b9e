// Forces between pairs of documents (lambdas.py): a thread per document, which adds up what all its partners do to it.

struct Rule {
    real margin, near;
};

// The force on the upper of two documents by whose exchange a measure changes by delta; equations of lambdas.py. Links: 0 logistic, 1 step,
// 2 spring.
template <int link>
__device__ real pull(const Rule& rule, real upper, real lower, real delta) {
    if (rule.near > 0) delta /= rule.near + (upper < lower ? lower - upper : upper - lower);
    const real lead = delta < 0 ? upper - lower : lower - upper;
    if (link == 0) return -delta / (1 + exp(lead));
    const real behind = rule.margin - lead;
    return behind > 0 ? (link == 1 ? -delta : -delta * behind) : (real)0;
}

// What a pair costs that stands in the right order where `ordered`: the potential whose slope is the force, for weights of 1.
template <int link>
__device__ double cost(const Rule& rule, real upper, real lower, bool ordered) {
    const double lead = ordered ? (double)upper - lower : (double)lower - upper;
    if (link == 0) return (lead < 0 ? -lead : 0.0) + log1p(exp(lead < 0 ? lead : -lead));
    const double behind = rule.margin > lead ? rule.margin - lead : 0.0;
    return link == 1 ? behind : behind * behind / 2;
}

struct Sums {
    double force, size, cost;

    __device__ void add(real pulled, double sign) {
        force += sign * pulled;
        size += pulled < 0 ? -pulled : pulled;
    }
};

// The change of a measure by an exchange of positions above and below; for unit weights which of the two is better.
template <bool unit>
__device__ real separable(const Placed& above, const Placed& below) {
    if (unit) return (real)((below.u > above.u) - (below.u < above.u));
    return (below.u - above.u) * (above.a - below.b);
}

constexpr int at_once = 8;  // pairs are added up in the type of the scores this many at a time, then in doubles

// What the documents from `first` to before `last`, each `stride` apart, do to `own`: they are above it, or below.
template <int link, bool unit, bool above>
__device__ void add_partners(const Rule& rule, const Placed* list, const Placed& own, int first, int last, int stride, bool with_cost, Sums& sums) {
    for (int chunk = first; chunk < last; chunk += at_once * stride) {
        real force = 0, size = 0;
#pragma unroll
        for (int step = 0; step < at_once; ++step) {
            const int i = chunk + step * stride;
            if (i >= last) break;
            const Placed other = list[i];
            const Placed &upper = above ? other : own, &lower = above ? own : other;
            const real delta = separable<unit>(upper, lower), pulled = pull<link>(rule, upper.s, lower.s, delta);
            force += above ? -pulled : pulled;
            size += pulled < 0 ? -pulled : pulled;
            if (unit && with_cost && delta != 0) sums.cost += cost<link>(rule, upper.s, lower.s, delta < 0);
        }
        sums.force += force;
        sums.size += size;
    }
}

struct Pairs {
    const Placed* placed;
    const index_t* indptr;
    int queries, rows, neighbors, link, unit;
    Rule rule;
};

// Calls `add_partners` for the link and the kind of weights.
template <bool above>
__device__ void add_some(const Pairs& pairs, const Placed* list, const Placed& own, int first, int last, int stride, bool with_cost, Sums& sums) {
#define ADD(LINK, UNIT) add_partners<LINK, UNIT, above>(pairs.rule, list, own, first, last, stride, with_cost, sums)
    if (pairs.unit)
        pairs.link == 0 ? ADD(0, true) : pairs.link == 1 ? ADD(1, true) : ADD(2, true);
    else
        pairs.link == 0 ? ADD(0, false) : pairs.link == 1 ? ADD(1, false) : ADD(2, false);
#undef ADD
}

constexpr int parts = 8;  // into which the partners of a top document are divided

__device__ int last_partner(const Pairs& pairs, int n, int p) { return pairs.neighbors < n - p ? p + 1 + pairs.neighbors : n; }

// What the documents below do to those of the first rows, in parts: where few rows count, a thread for each would leave most idle.
extern "C" __global__ void top_forces(const Placed* placed, const index_t* indptr, int queries, int unit, int rows, int neighbors, int link, double margin,
                                      double near, double* part_forces, double* part_sizes) {
    const index_t thread = thread_number();
    if (thread >= (index_t)queries * rows * parts) return;
    const int q = (int)(thread / (rows * parts)), p = (int)(thread / parts % rows), part = (int)(thread % parts);
    const Query query = query_at(indptr, q);
    const Pairs pairs = {placed, indptr, queries, rows, neighbors, link, unit, {(real)margin, (real)near}};
    Sums sums = {0, 0, 0};
    if (p < query.n) {
        const Placed* list = placed + query.begin;
        add_some<false>(pairs, list, list[p], p + 1 + part, last_partner(pairs, query.n, p), parts, false, sums);
    }
    part_forces[thread] = sums.force;
    part_sizes[thread] = sums.size;
}

// Forces between pairs of which the upper is among the first `rows`, and at most `neighbors` apart; with the parts of `top_forces`, or null.
extern "C" __global__ void pair_forces(const Placed* placed, const index_t* order, const index_t* indptr, int queries, index_t documents, int unit, int rows,
                                       int neighbors, int link, double margin, double near, const double* part_forces, const double* part_sizes,
                                       const double* factor, real* slope, double* size, double* costs) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const Query query = query_of(indptr, queries, at);
    const Placed* list = placed + query.begin;
    const int p = (int)(at - query.begin);
    const Pairs pairs = {placed, indptr, queries, rows, neighbors, link, unit, {(real)margin, (real)near}};
    const Placed own = list[p];
    Sums sums = {0, 0, 0};
    add_some<true>(pairs, list, own, p > neighbors ? p - neighbors : 0, least(p, rows), 1, false, sums);
    if (p < rows && !part_forces) add_some<false>(pairs, list, own, p + 1, last_partner(pairs, query.n, p), 1, costs != 0, sums);
    for (int part = 0; p < rows && part_forces && part < parts; ++part) {
        const index_t from = ((index_t)query.number * rows + p) * parts + part;
        sums.force += part_forces[from];
        sums.size += part_sizes[from];
    }
    const index_t d = order[at];
    slope[d] = (real)(sums.force * factor[query.number]);
    if (size) size[d] = sums.size;
    if (costs) costs[d] = sums.cost;
}

__device__ real linked(int link, const Rule& rule, real upper, real lower, real delta) {
    return link == 0 ? pull<0>(rule, upper, lower, delta) : link == 1 ? pull<1>(rule, upper, lower, delta) : pull<2>(rule, upper, lower, delta);
}

// The same for cascades: (u_j - u_i) P_{i-1} (c_i - B_ij - c_j Q_ij), with B and Q built up from one partner to the next.
extern "C" __global__ void cascade_forces(const Placed* placed, const index_t* order, const index_t* indptr, int queries, index_t documents, int cutoff, int rows,
                                          int neighbors, int link, double margin, double near, const double* factor, real* slope, double* size) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const Query query = query_of(indptr, queries, at);
    const Placed* list = placed + query.begin;
    const int p = (int)(at - query.begin), last = neighbors < query.n - p ? p + 1 + neighbors : query.n;
    const Rule rule = {(real)margin, (real)near};
    const Placed own = list[p];
    Sums sums = {0, 0, 0};
    double gained = 0, pass = 1;  // between the two
    for (int i = least(p, cutoff) - 1; i >= 0; --i) {
        const Placed above = list[i];
        const double omega = above.b * (above.a - gained - own.a * pass);
        if (i < rows && p - i <= neighbors) sums.add(linked(link, rule, above.s, own.s, (real)((own.u - above.u) * omega)), -1);
        gained = above.a * above.u + (1 - above.u) * gained;
        pass *= 1 - above.u;
    }
    gained = 0, pass = 1;
    for (int j = p + 1; p < rows && j < last; ++j) {
        const Placed below = list[j];
        const double omega = own.b * (own.a - gained - below.a * pass);
        sums.add(linked(link, rule, own.s, below.s, (real)((below.u - own.u) * omega)), 1);
        gained += below.a * below.u * pass;
        pass *= 1 - below.u;
    }
    const index_t d = order[at];
    slope[d] = (real)(sums.force * factor[query.number]);
    if (size) size[d] = sums.size;
}
