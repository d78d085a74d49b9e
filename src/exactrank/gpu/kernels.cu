// Kernels over lists of any length, one thread per document or per query.
//
// No thread waits for another, nothing is padded and there are no atomic additions: each thread adds up in a fixed order, in doubles, so that
// the same input gives the same bits. `indptr` says where each query's documents begin; `order` holds documents by position, best first.
// REAL is the type of scores: float or double.

typedef long long index_t;
typedef REAL real;
__device__ const double largest_number = 1.7976931348623157e308;

struct Placed {  // what a document at a position brings to its pairs; for cascades a is the discount and b the chance of being read
    real s, u, a, b;
};

struct Query {
    index_t begin;
    int n, number;
};

__device__ index_t thread_number() { return (index_t)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ Query query_at(const index_t* indptr, int q) { return {indptr[q], (int)(indptr[q + 1] - indptr[q]), q}; }

// The query of document d, by bisection.
__device__ Query query_of(const index_t* indptr, int queries, index_t d) {
    int low = 0, high = queries;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (indptr[middle] <= d)
            low = middle;
        else
            high = middle;
    }
    return query_at(indptr, low);
}

__device__ int least(int a, int b) { return a < b ? a : b; }

// Ranks by counting: largest score first, NaN last; of equal scores the least key, where there are keys, then the order given.
// Where a score is no finite number the factor of its query, where there are factors, becomes NaN.
extern "C" __global__ void rank_documents(const real* score, const double* key, const index_t* indptr, int queries, index_t documents, index_t* order,
                                          double* factor) {
    const index_t d = thread_number();
    if (d >= documents) return;
    const Query query = query_of(indptr, queries, d);
    const real* list = score + query.begin;
    const real own = score[d];
    const int p = (int)(d - query.begin);
    int rank = 0, equal = 0;
    for (int j = 0; j < query.n; ++j) {
        rank += list[j] > own;
        equal += list[j] == own && (key || j < p);
    }
    if (!key) rank += equal;
    const bool tied = key && equal != 1;  // NaN equals nothing, itself included
    for (int j = 0; (tied || own != own) && j < query.n; ++j) {
        const index_t other = query.begin + j;
        if (own != own && list[j] == list[j])
            ++rank;
        else if (list[j] == own || own != own)
            rank += key && key[other] != key[d] ? key[other] < key[d] : j < p;
    }
    order[query.begin + rank] = d;
    if (factor && own - own != 0) factor[query.number] = own - own;
}

// How many documents of each query were retrieved: those whose score is above -inf.
extern "C" __global__ void count_retrieved(const real* score, const index_t* indptr, int queries, int* retrieved) {
    const index_t q = thread_number();
    if (q >= queries) return;
    int found = 0;
    for (index_t d = indptr[q]; d < indptr[q + 1]; ++d) found += score[d] > -largest_number;
    retrieved[q] = found;
}

// Documents in ranked order; their changes are separable, (u_j - u_i) (a_i - b_j), with a = b the discount.
extern "C" __global__ void place(const real* score, const double* useful, const double* discount, int cutoff, const index_t* order, const index_t* indptr,
                                 int queries, index_t documents, Placed* placed) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const Query query = query_of(indptr, queries, at);
    const index_t d = order[at];
    const int p = (int)(at - query.begin);
    const real share = discount && p < cutoff ? (real)discount[p] : (real)0;
    placed[at] = {score[d], (real)useful[d], share, share};
}

// sum_r u_r d_r down to the cutoff; `retrieved` may be null.
extern "C" __global__ void discounted_sums(const double* useful, const double* discount, int cutoff, const int* retrieved, const index_t* order,
                                           const index_t* indptr, int queries, double* value) {
    const index_t q = thread_number();
    if (q >= queries) return;
    const Query query = query_at(indptr, (int)q);
    const int top = least(cutoff, retrieved ? retrieved[q] : query.n);
    double sum = 0;
    for (int p = 0; p < top; ++p) sum += useful[order[query.begin + p]] * discount[p];
    value[q] = sum;
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
    int queries, rows, neighbours, link, unit;
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

__device__ int last_partner(const Pairs& pairs, int n, int p) { return pairs.neighbours < n - p ? p + 1 + pairs.neighbours : n; }

// What the documents below do to those of the first rows, in parts: where few rows count, a thread for each would leave most idle.
extern "C" __global__ void top_forces(const Placed* placed, const index_t* indptr, int queries, int unit, int rows, int neighbours, int link, double margin,
                                      double near, double* part_forces, double* part_sizes) {
    const index_t thread = thread_number();
    if (thread >= (index_t)queries * rows * parts) return;
    const int q = (int)(thread / (rows * parts)), p = (int)(thread / parts % rows), part = (int)(thread % parts);
    const Query query = query_at(indptr, q);
    const Pairs pairs = {placed, indptr, queries, rows, neighbours, link, unit, {(real)margin, (real)near}};
    Sums sums = {0, 0, 0};
    if (p < query.n) {
        const Placed* list = placed + query.begin;
        add_some<false>(pairs, list, list[p], p + 1 + part, last_partner(pairs, query.n, p), parts, false, sums);
    }
    part_forces[thread] = sums.force;
    part_sizes[thread] = sums.size;
}

// Forces between pairs of which the upper is among the first `rows`, and at most `neighbours` apart; with the parts of `top_forces`, or null.
extern "C" __global__ void pair_forces(const Placed* placed, const index_t* order, const index_t* indptr, int queries, index_t documents, int unit, int rows,
                                       int neighbours, int link, double margin, double near, const double* part_forces, const double* part_sizes,
                                       const double* factor, double* slope, double* size, double* costs) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const Query query = query_of(indptr, queries, at);
    const Placed* list = placed + query.begin;
    const int p = (int)(at - query.begin);
    const Pairs pairs = {placed, indptr, queries, rows, neighbours, link, unit, {(real)margin, (real)near}};
    const Placed own = list[p];
    Sums sums = {0, 0, 0};
    add_some<true>(pairs, list, own, p > neighbours ? p - neighbours : 0, least(p, rows), 1, false, sums);
    if (p < rows && !part_forces) add_some<false>(pairs, list, own, p + 1, last_partner(pairs, query.n, p), 1, costs != 0, sums);
    for (int part = 0; p < rows && part_forces && part < parts; ++part) {
        const index_t from = ((index_t)query.number * rows + p) * parts + part;
        sums.force += part_forces[from];
        sums.size += part_sizes[from];
    }
    const index_t d = order[at];
    slope[d] = factor ? sums.force * factor[query.number] : sums.force;
    if (size) size[d] = sums.size;
    if (costs) costs[d] = sums.cost;
}

__device__ real linked(int link, const Rule& rule, real upper, real lower, real delta) {
    return link == 0 ? pull<0>(rule, upper, lower, delta) : link == 1 ? pull<1>(rule, upper, lower, delta) : pull<2>(rule, upper, lower, delta);
}

// The same for cascades: (u_j - u_i) P_{i-1} (c_i - B_ij - c_j Q_ij), with B and Q built up from one partner to the next.
extern "C" __global__ void cascade_forces(const Placed* placed, const index_t* order, const index_t* indptr, int queries, index_t documents, int cutoff, int rows,
                                          int neighbours, int link, double margin, double near, const double* factor, double* slope, double* size) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const Query query = query_of(indptr, queries, at);
    const Placed* list = placed + query.begin;
    const int p = (int)(at - query.begin), last = neighbours < query.n - p ? p + 1 + neighbours : query.n;
    const Rule rule = {(real)margin, (real)near};
    const Placed own = list[p];
    Sums sums = {0, 0, 0};
    double gained = 0, pass = 1;  // between the two
    for (int i = least(p, cutoff) - 1; i >= 0; --i) {
        const Placed above = list[i];
        const double omega = above.b * (above.a - gained - own.a * pass);
        if (i < rows && p - i <= neighbours) sums.add(linked(link, rule, above.s, own.s, (real)((own.u - above.u) * omega)), -1);
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
    slope[d] = factor ? sums.force * factor[query.number] : sums.force;
    if (size) size[d] = sums.size;
}

extern "C" __global__ void sum_by_query(const double* given, const index_t* indptr, int queries, double* sum) {
    const index_t q = thread_number();
    if (q >= queries) return;
    double total = 0;
    for (index_t d = indptr[q]; d < indptr[q + 1]; ++d) total += given[d];
    sum[q] = total;
}

extern "C" __global__ void largest_by_query(const double* given, const index_t* indptr, int queries, double* largest) {
    const index_t q = thread_number();
    if (q >= queries) return;
    double most = -largest_number;
    for (index_t d = indptr[q]; d < indptr[q + 1]; ++d) most = given[d] > most ? given[d] : most;
    largest[q] = most;
}

// Each document's number times its query's factor.
extern "C" __global__ void scale_by_query(double* numbers, const double* factor, const index_t* indptr, int queries, index_t documents) {
    const index_t d = thread_number();
    if (d < documents) numbers[d] *= factor[query_of(indptr, queries, d).number];
}

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

// Exact line search. Along s + alpha t the rank of a document changes by one where its line crosses another, so a positional measure is
//
//   sum over useful documents i of c_i(rank of i),    c_i(r) a whole number: its worth times the discount of rank r, in fixed point      (1)
//
// and each useful document is a block: its crossings, sorted, with the rank after each. Whole numbers add up to the same in any order. The
// loops of a block work for any number of threads.

constexpr int octaves = 121, bins_per_octave = 1024, lowest_exponent = 1023 - 60;
constexpr int half_bins = octaves * bins_per_octave;
constexpr index_t no_crossing = 0x7fffffffffffffffLL;

// Bins are in the order of alpha: 1,024 per octave on either side of 0.
__device__ int bin_of(double alpha) {
    const index_t bits = __double_as_longlong(fabs(alpha));
    index_t distance = (bits >> 42) - (index_t)lowest_exponent * bins_per_octave;
    distance = distance < 0 ? 0 : distance >= half_bins ? half_bins - 1 : distance;
    return alpha < 0 ? half_bins - 1 - (int)distance : half_bins + (int)distance;
}

// Numbers that sort as their doubles do. The last nine bits are dropped, so that crossings at one place are found at one place, and say
// what happens there: whether the other line rises above, and whether it is above at the place itself, where both are tied.
constexpr index_t place_bits = ~0x1ffLL, rises_bit = 1, above_bit = 2;
__device__ index_t sortable(double alpha) {
    const index_t bits = (__double_as_longlong(fabs(alpha)) + 0x100) & place_bits;
    return alpha < 0 ? -bits : bits;
}
__device__ double unsorted(index_t key) {
    const index_t bits = key & place_bits;
    return bits < 0 ? -__longlong_as_double(-bits) : __longlong_as_double(bits);
}

struct Line {
    double score, slope;
    index_t number;
};

// Is line a above line b where both are equal all along?
__device__ bool is_before(const double* key, index_t a, index_t b) { return key && key[a] != key[b] ? key[a] < key[b] : a < b; }

// Is the line of document d above `own` at alpha, as evaluation ranks there?
__device__ bool is_above(const double* score, const double* slope, const double* key, index_t d, const Line& own, double alpha) {
    const double other = __dadd_rn(score[d], __dmul_rn(alpha, slope[d])), here = __dadd_rn(own.score, __dmul_rn(alpha, own.slope));
    return other != here ? other > here : is_before(key, d, own.number);
}

// Whole numbers that sort as floats do, and back.
__device__ int float_key(float x) {
    const int bits = __float_as_int(x);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
__device__ float float_of(int key) { return __int_as_float(key ^ ((key >> 31) & 0x7fffffff)); }

constexpr int most_groups = 32, least_key = -0x7fffffff - 1, largest_key = 0x7fffffff;

// Ends between which a line can be among the first ranks. If m lines fall below it at A or later, these are above it before A; if m rise above
// it at B or earlier, they are above it after B. With m, the number of ranks, groups of lines,
//
//   A = the least of the groups' last falls,    B = the last of the groups' first rises                                                (2)
//
// rounded outwards. Groups without a fall or rise set no end.
struct Ends {
    int last_fall[most_groups], first_rise[most_groups];
};

// Narrows low and high down to (2); all threads of a block call it.
__device__ void narrow(const double* score, const double* slope, const Query& query, const Line& own, int groups, Ends* ends, double* low, double* high) {
    for (int g = threadIdx.x; g < groups; g += blockDim.x) ends->last_fall[g] = least_key, ends->first_rise[g] = largest_key;
    __syncthreads();
    for (int j = threadIdx.x; j < query.n; j += blockDim.x) {
        const double s = score[query.begin + j], t = slope[query.begin + j];
        if (t == own.slope) continue;
        const double alpha = (s - own.score) / (own.slope - t);
        if (t > own.slope)
            atomicMin(&ends->first_rise[j % groups], float_key(__double2float_ru(alpha)));
        else
            atomicMax(&ends->last_fall[j % groups], float_key(__double2float_rd(alpha)));
    }
    __syncthreads();
    int fall = largest_key, rise = least_key;
    for (int g = 0; g < groups; ++g) {
        fall = least(fall, ends->last_fall[g]);
        rise = ends->first_rise[g] > rise ? ends->first_rise[g] : rise;
    }
    const double first = fall > least_key ? float_of(fall) : -largest_number, last = rise < largest_key ? float_of(rise) : largest_number;
    const double left = first - fabs(first) * 1e-6 - 1e-30, right = last + fabs(last) * 1e-6 + 1e-30;  // NaN or infinite beyond all floats
    if (left > *low) *low = left;
    if (right < *high) *high = right;
}

struct Found {
    int above, stay, count;  // lines above right after low, those of them that stay there up to high, and crossings
};

// Lists the crossings of line `own` with a query's others between low and high, in no order; with `ties` also what is above there.
__device__ void list_crossings(const double* score, const double* slope, const double* key, const Query& query, const Line& own, double low, double high,
                               bool ties, Found* found, index_t* crossing) {
    int above = 0, stay = 0;
    for (int j = threadIdx.x; j < query.n; j += blockDim.x) {
        const index_t d = query.begin + j;
        if (d == own.number) continue;
        const double s = score[d], t = slope[d];
        if (t == own.slope) {
            stay += s > own.score || (s == own.score && is_before(key, d, own.number));
            continue;
        }
        const double alpha = (s - own.score) / (own.slope - t);
        const bool rises = t > own.slope, is_above_first = alpha <= low ? rises : !rises;
        if (alpha > low && alpha < high) {
            const index_t place = sortable(alpha);
            const index_t tied = ties && is_above(score, slope, key, d, own, unsorted(place)) ? above_bit : 0;
            crossing[atomicAdd(&found->count, 1)] = place | tied | (rises ? rises_bit : 0);
            above += is_above_first;
        } else {
            stay += is_above_first;
        }
    }
    if (above + stay) atomicAdd(&found->above, above + stay);
    if (stay) atomicAdd(&found->stay, stay);
}

__device__ void sort_crossings(index_t* key, int room) {
    for (int width = 2; width <= room; width *= 2)
        for (int distance = width / 2; distance > 0; distance /= 2) {
            for (int e = threadIdx.x; e < room / 2; e += blockDim.x) {
                const int i = 2 * e - (e & (distance - 1)), j = i + distance;
                const bool rising = (i & width) == 0;
                const index_t a = key[i], b = key[j];
                if ((a > b) == rising) key[i] = b, key[j] = a;
            }
            __syncthreads();
        }
}

__device__ index_t contribution(double worth, const double* discount, int cutoff, int rank) { return rank < cutoff ? llrint(worth * discount[rank]) : 0; }

// The events of the useful documents. Without `wanted` they are added to histograms of all changes and of those that rise; with it those in
// the bins that are wanted are listed, in no order, with `tied_out` also the change to the place itself. `start`, where given, gets what the
// document contributes right after low.
extern "C" __global__ void line_events(const double* score, const double* slope, const double* key, const double* worth, const index_t* useful,
                                       const int* query_of_useful, const index_t* indptr, const double* discount, int cutoff, double low, double high, index_t* room,
                                       int room_each, index_t* start, unsigned long long* change, unsigned long long* rise, const unsigned char* wanted,
                                       unsigned long long* listed, index_t capacity, double* alpha_out, index_t* change_out, index_t* tied_out) {
    extern __shared__ index_t shared_room[];
    __shared__ Found found;
    __shared__ Ends ends;
    __shared__ int sums[1024];
    const index_t d = useful[blockIdx.x];
    const Query query = query_at(indptr, query_of_useful[blockIdx.x]);
    index_t* crossing = room ? room + (index_t)blockIdx.x * room_each : shared_room;
    const Line own = {score[d], slope[d], d};
    if (threadIdx.x == 0) found = {0, 0, 0};
    if (!wanted && cutoff <= most_groups && 4 * cutoff <= query.n) narrow(score, slope, query, own, cutoff, &ends, &low, &high);
    __syncthreads();
    list_crossings(score, slope, key, query, own, low, high, tied_out != 0, &found, crossing);
    __syncthreads();
    if (found.stay >= cutoff) {  // never among the ranks that count
        if (threadIdx.x == 0 && start) start[blockIdx.x] = 0;
        return;
    }
    int size = 1;
    while (size < found.count) size *= 2;
    for (int e = found.count + threadIdx.x; e < size; e += blockDim.x) crossing[e] = no_crossing;
    __syncthreads();
    sort_crossings(crossing, size);
    // Each thread goes through as many crossings as the others, from the rank that those before leave.
    const int each = (found.count + blockDim.x - 1) / blockDim.x, first = least(threadIdx.x * each, found.count), last = least(first + each, found.count);
    int moved = 0;
    for (int e = first; e < last; ++e) moved += crossing[e] & rises_bit ? 1 : -1;
    sums[threadIdx.x] = moved;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        const int before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    int rank = found.above + sums[threadIdx.x] - moved;
    if (threadIdx.x == 0 && start) start[blockIdx.x] = contribution(worth[d], discount, cutoff, rank);
    for (int e = first; e < last;) {  // places, each by the thread that has its first crossing
        const index_t place = crossing[e] & place_bits;
        const bool is_own = e == 0 || (crossing[e - 1] & place_bits) != place;
        const int was = rank, end = is_own ? found.count : last;
        int tied = rank;
        for (; e < end && (crossing[e] & place_bits) == place; ++e) {
            rank += crossing[e] & rises_bit ? 1 : -1;
            tied += (crossing[e] & above_bit ? 1 : 0) - (crossing[e] & rises_bit ? 0 : 1);
        }
        if (!is_own || least(was, least(rank, tied)) >= cutoff) continue;
        const index_t before = contribution(worth[d], discount, cutoff, was), step = contribution(worth[d], discount, cutoff, rank) - before;
        const index_t to_place = tied_out ? contribution(worth[d], discount, cutoff, tied) - before : 0;
        if (step == 0 && to_place == 0) continue;
        const double alpha = unsorted(place);
        const int bin = bin_of(alpha);
        if (!wanted) {
            atomicAdd(&change[bin], (unsigned long long)step);
            if (step > 0) atomicAdd(&rise[bin], (unsigned long long)step);
        } else if (wanted[bin]) {
            const index_t slot = (index_t)atomicAdd(listed, 1ULL);
            if (slot >= capacity) continue;
            alpha_out[slot] = alpha, change_out[slot] = step;
            if (tied_out) tied_out[slot] = to_place;
        }
    }
}

// What each document contributes, by position.
extern "C" __global__ void contributions(const double* worth, const index_t* order, const index_t* indptr, int queries, index_t documents,
                                         const double* discount, int cutoff, index_t* found) {
    const index_t at = thread_number();
    if (at >= documents) return;
    found[at] = contribution(worth[order[at]], discount, cutoff, (int)(at - query_of(indptr, queries, at).begin));
}
