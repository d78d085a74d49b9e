// Listwise losses (losses.py).

// ListNet (losses.py): cross entropy against targets that add up to 1, or to 0 where a query is left out.
extern "C" __global__ void list_net(const real* score, const double* target, const index_t* indptr, int queries, double* value, double* slope) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const index_t begin = indptr[q], end = indptr[q + 1];
    double most = -largest_number, total = 0, mass = 0, aligned = 0;
    for (index_t d = begin; d < end; ++d) most = score[d] > most ? (double)score[d] : most;
    for (index_t d = begin; d < end; ++d) {
        total += exp(score[d] - most);
        mass += target[d];
        aligned += target[d] * (score[d] - most);
    }
    value[q] = aligned - mass * log(total);
    for (index_t d = begin; d < end; ++d) slope[d] = target[d] - mass * exp(score[d] - most) / total;
}

// ListMLE: the likelihood of the first `top` of the ideal order; as listmle.hpp, `total` is room by position.
extern "C" __global__ void list_mle(const real* score, const index_t* ideal, const int* top, const index_t* indptr, int queries, double* total, double* value,
                                    double* slope) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const index_t* order = ideal + query.begin;
    double most = -largest_number, sum = 0, likelihood = 0;
    for (int p = query.n - 1; p >= 0; --p) {
        const double s = score[order[p]];
        sum = s > most ? sum * exp(most - s) + 1 : sum + exp(s - most);
        most = s > most ? s : most;
        total[query.begin + p] = most + log(sum);
        if (p < top[q]) likelihood += s - total[query.begin + p];
    }
    value[q] = likelihood;
    double log_reach = -largest_number;  // of the sum of 1 / S_j so far
    for (int p = 0; p < query.n; ++p) {
        if (p < top[q]) {
            const double next = -total[query.begin + p], high = next > log_reach ? next : log_reach;
            log_reach = high + log(exp(next - high) + exp(log_reach - high));
        }
        slope[order[p]] = (p < top[q]) - exp(score[order[p]] + log_reach);
    }
}

// ApproxNDCG, first half: what the soft rank of each document with a gain adds, and how that falls with the rank.
extern "C" __global__ void soft_ranks(const real* score, const double* worth, double alpha, const index_t* indptr, int queries, index_t documents, double* term,
                                      double* fall) {
    const index_t d = thread_number();
    if (d >= documents) return;
    const Query query = query_of(indptr, queries, d);
    term[d] = fall[d] = 0;
    if (worth[d] == 0 || query.n == 1) return;
    double rank = 0.5;  // the document itself is in the sum, by 1/2
    for (index_t j = query.begin; j < query.begin + query.n; ++j) rank += 1 / (1 + exp(alpha * ((double)score[d] - score[j])));
    const double log = log1p(rank), ln2 = 0.6931471805599453;
    term[d] = worth[d] * ln2 / log;
    fall[d] = -worth[d] * ln2 / ((1 + rank) * log * log) * alpha;
}

// Second half: alpha sum_i (b_i - b_m) q_im (1 - q_im).
extern "C" __global__ void soft_rank_slopes(const real* score, const double* fall, double alpha, const index_t* indptr, int queries, index_t documents,
                                            double* slope) {
    const index_t d = thread_number();
    if (d >= documents) return;
    const Query query = query_of(indptr, queries, d);
    double sum = 0;
    for (index_t j = query.begin; j < query.begin + query.n; ++j) {
        const double above = 1 / (1 + exp(alpha * ((double)score[d] - score[j])));
        sum += (fall[j] - fall[d]) * above * (1 - above);
    }
    slope[d] = sum;
}
