// Measures of ranked lists (families.py): a thread per query, which goes down the list. For training also what each position brings to exchanges.

struct Placed {  // what a document at a position brings to its pairs; for cascades a is the discount and b the chance of being read
    real s, u, a, b;
};

// Documents in ranked order; their changes are separable, (u_j - u_i) (a_i - b_j), with a = b the discount.
extern "C" __global__ void place(const real* score, const double* useful, const double* discount, int of_query, int cutoff, const index_t* order,
                                 const index_t* indptr, int queries, index_t documents, Placed* placed) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const Query query = query_of(indptr, queries, at);
    const index_t d = order[at];
    const int p = (int)(at - query.begin);
    const real share = discount && p < cutoff ? (real)discount[of_query ? at : p] : (real)0;
    placed[at] = {score[d], (real)useful[d], share, share};
}

// sum_r u_r d_r down to the cutoff; the discounts are those of each query where `of_query` says so, and `retrieved` may be null.
extern "C" __global__ void discounted_sums(const double* useful, const double* discount, int of_query, int cutoff, const int* retrieved, const index_t* order,
                                           const index_t* indptr, int queries, double* value) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const int top = least(cutoff, retrieved ? retrieved[q] : query.n);
    double sum = 0;
    if (of_query) discount += query.begin;
    for (int p = 0; p < top; ++p) sum += useful[order[query.begin + p]] * discount[p];
    value[q] = sum;
}

// The discounts of MeanNDCG (positional.hpp): d_r / k sum_{c>=r} 1 / (the ideal sum at cutoff c), with documents in their ideal order.
extern "C" __global__ void mean_discounts(const double* useful, const double* discount, int cutoff, const index_t* ideal, const index_t* indptr, int queries,
                                          double* mean) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const int top = least(cutoff, query.n);
    double sum = 0, rest = 0;
    for (int p = 0; p < top; ++p) mean[query.begin + p] = sum += useful[ideal[query.begin + p]] * discount[p];
    for (int p = top - 1; p >= 0; --p) {
        const double largest = mean[query.begin + p];
        rest += largest > 0 ? 1 / largest : 0;
        mean[query.begin + p] = discount[p] * rest / top;
    }
}

// AP = sum_r u_r C_r / r / N, and what exchanges change by (families.py); `placed`, with scores, may be null.
extern "C" __global__ void average_precision(const real* score, const double* useful, int cutoff, int limit, const int* retrieved, const index_t* order,
                                             const index_t* indptr, int queries, double* value, Placed* placed) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const int ranked = retrieved ? retrieved[q] : query.n;
    double relevant = 0, found = 0, sum = 0, value_sum = 0;
    for (int p = 0; p < query.n; ++p) relevant += useful[query.begin + p];
    const double per_total = relevant > 0 ? 1 / (limit && relevant > cutoff ? cutoff : relevant) : 0;
    for (int p = 0; p < query.n && (placed || found < relevant); ++p) {
        const index_t d = order[query.begin + p];
        const double u = useful[d], weight = p < cutoff && p < ranked ? 1.0 / (p + 1) : 0.0;
        if (placed)
            placed[query.begin + p] = {score[d], (real)u, (real)((weight * (found + 1) - (sum + weight * u)) * per_total),
                                       (real)((weight * (found + u) - sum) * per_total)};
        found += u;
        sum += weight * u;
        value_sum += weight * u * found;
    }
    value[q] = value_sum * per_total;
}

// sum_r c_r u_r prod_{t<r} (1 - u_t), and for `placed`, where given, the discounts and the chance that each position is read.
extern "C" __global__ void cascade(const real* score, const double* useful, const double* discount, int cutoff, const int* retrieved, const index_t* order,
                                   const index_t* indptr, int queries, double* value, Placed* placed) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const int top = least(cutoff, retrieved ? retrieved[q] : query.n);
    double sum = 0, reach = 1;
    for (int p = 0; p < (placed ? query.n : top) && (placed || reach > 0); ++p) {
        const index_t d = order[query.begin + p];
        const double u = useful[d], share = p < top ? discount[p] : 0.0;
        if (placed) placed[query.begin + p] = {score[d], (real)u, (real)share, (real)reach};
        sum += share * u * reach;
        reach *= 1 - u;
    }
    value[q] = sum;
}

// Ties that count as the mean over all orders of the tied documents, in the closed forms of the processor's kernels. `order` is that of one
// query here, and `tied` the scores, or null where ties are broken.
__device__ int tie_end(const real* tied, const index_t* order, int first, int retrieved) {
    int last = first + 1;
    while (tied && last < retrieved && tied[order[last]] == tied[order[first]]) ++last;
    return last;
}

// Positional measures: tied documents share the mean usefulness of their group.
extern "C" __global__ void expected_sums(const double* useful, const double* discount, int of_query, int cutoff, const real* tied, const int* retrieved,
                                         const index_t* orders, const index_t* indptr, int queries, double* value) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const index_t begin = indptr[q], *order = orders + begin;
    const int top = least(cutoff, retrieved[q]);
    if (of_query) discount += begin;
    double sum = 0;
    for (int first = 0, last; first < top; first = last) {
        last = tie_end(tied, order, first, retrieved[q]);
        double worth = 0, weight = 0;
        for (int p = first; p < last; ++p) worth += useful[order[p]];
        for (int p = first; p < least(last, top); ++p) weight += discount[p];
        sum += worth / (last - first) * weight;
    }
    value[q] = sum;
}

// Average precision: of g tied documents m are relevant, one at each position with chance m/g, with (i - 1)(m - 1)/(g - 1) of them above it.
extern "C" __global__ void expected_precision(const double* useful, int cutoff, int limit, const real* tied, const int* retrieved, const index_t* orders,
                                              const index_t* indptr, int queries, double* value) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const index_t* order = orders + query.begin;
    const int top = least(cutoff, retrieved[q]);
    double relevant = 0, above = 0, sum = 0;
    for (int p = 0; p < query.n; ++p) relevant += useful[query.begin + p];
    for (int first = 0, last; first < top; first = last) {
        last = tie_end(tied, order, first, retrieved[q]);
        double hits = 0;
        for (int p = first; p < last; ++p) hits += useful[order[p]];
        const double step = last - first > 1 ? (hits - 1) / (last - first - 1) : 0;
        for (int p = first; p < least(last, top); ++p) sum += hits / (last - first) * (above + 1 + (p - first) * step) / (p + 1);
        above += hits;
    }
    value[q] = relevant > 0 ? sum / (limit && relevant > cutoff ? cutoff : relevant) : 0;
}

// Cascades: the mean chance of reading on after m of the tied documents, built up one document at a time (cascade.hpp), in `survivals`.
extern "C" __global__ void expected_cascade(const double* useful, const double* discount, int cutoff, const real* tied, const int* retrieved,
                                            const index_t* orders, const index_t* indptr, int queries, double* value, double* survivals) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const index_t begin = indptr[q], *order = orders + begin;
    const int top = least(cutoff, retrieved[q]);
    double *survival = survivals + begin + q, sum = 0, reach = 1;
    for (int first = 0, last; first < top && reach > 0; first = last) {
        last = tie_end(tied, order, first, retrieved[q]);
        const int deepest = least(last, top) - first;
        survival[0] = 1;
        for (int m = 1; m <= deepest; ++m) survival[m] = 0;
        for (int n = 1; n <= last - first; ++n) {
            const double pass = 1 - useful[order[first + n - 1]];
            for (int m = least(n, deepest); m > 0; --m) survival[m] = ((n - m) * survival[m] + m * pass * survival[m - 1]) / n;
        }
        for (int m = 0; m < deepest; ++m) sum += discount[first + m] * reach * (survival[m] - survival[m + 1]);
        reach *= survival[deepest];
    }
    value[q] = sum;
}

// bpref (pair_counts.hpp): usefulness is 1 if relevant, 0 if judged and not relevant, and less if not judged.
extern "C" __global__ void preferences(const double* useful, const real* tied, const int* retrieved, const index_t* orders, const index_t* indptr, int queries,
                                       double* value) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const index_t* order = orders + query.begin;
    double total = 0, others = 0, sum = 0, above = 0;
    for (index_t d = query.begin; d < query.begin + query.n; ++d) total += useful[d] == 1, others += useful[d] == 0;
    const double bound = total < others ? total : others;
    for (int first = 0, last; first < retrieved[q]; first = last) {
        last = tie_end(tied, order, first, retrieved[q]);
        double hits = 0, misses = 0, credit = 0;
        for (int p = first; p < last; ++p) hits += useful[order[p]] == 1, misses += useful[order[p]] == 0;
        for (double m = 0; hits > 0 && m <= misses; ++m) credit += (above + m > 0 ? 1 - (above + m < total ? above + m : total) / bound : 1) / (misses + 1);
        sum += hits * credit;
        above += misses;
    }
    value[q] = total > 0 ? sum / total : 0;
}

// Of each document, by position: how many are less useful, and twice how many of these are below it; tied with it, each counts as one.
extern "C" __global__ void pairs_in_order(const double* useful, const real* tied, const int* retrieved, const index_t* orders, const index_t* indptr, int queries,
                                          index_t documents, double* less_useful, double* twice_below) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const Query query = query_of(indptr, queries, at);
    const index_t *order = orders + query.begin, own = orders[at];
    const int p = (int)(at - query.begin), ranked = retrieved[query.number];
    int less = 0, below = 0;
    for (int j = 0; j < query.n; ++j) {
        if (useful[order[j]] >= useful[own]) continue;
        const bool ties = tied && j < ranked && tied[order[j]] == tied[own];
        ++less;
        below += p >= ranked ? 0 : ties ? 1 : j > p ? 2 : 0;
    }
    less_useful[at] = less;
    twice_below[at] = below;
}
