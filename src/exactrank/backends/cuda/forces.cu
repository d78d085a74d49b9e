// Slopes and curvatures that trees follow, in doubles, with the operations of the processor in its order: to the last bit the same. Compiled
// without fused multiply-add.

constexpr double rounder = 0x1.8p52;
constexpr index_t rounder_bits = 0x4338000000000000;

// portable::bounded_exp of elementary.hpp.
__device__ double bounded_exp(double x) {
    const double bounded = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    const double shifted = bounded * 0x1.71547652b82fep0 + rounder, k = shifted - rounder;
    const double high = bounded - k * 0x1.62e42fefa3800p-1, low = k * 0x1.ef35793c76730p-45, r = high - low;
    double sum = 1.0 / 6227020800.0;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 1.0 / 2;
    const double minus_one = high + (sum * (r * r) - low);
    return (1.0 + minus_one) * __longlong_as_double((__double_as_longlong(shifted) - rounder_bits + 1023) << 52);
}

// portable::log2 of normal numbers.
__device__ double portable_log2(double x) {
    const index_t bits = __double_as_longlong(x), exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
    const double k = __longlong_as_double(exponent + rounder_bits) - rounder, f = __longlong_as_double(bits - exponent * (1LL << 52)) - 1.0;
    const double half_square = 0.5 * f * f, s = f / (2.0 + f), square = s * s;
    double sum = 2.0 / 21;
    for (int odd = 19; odd > 1; odd -= 2) sum = sum * square + 2.0 / odd;
    const double tail = s * (half_square + sum * square);
    const double upper = __longlong_as_double(__double_as_longlong(f - half_square) & ~0xffffffffLL), lower = ((f - upper) - half_square) + tail;
    const double product = upper * 0x1.7154765200000p0, all = k + product;
    const double value = all + (((k - all) + product) + ((lower + upper) * 0x1.705fc2eefa200p-33 + lower * 0x1.7154765200000p0));
    return x <= largest_number ? value : x;
}

// A document at its position: e^s as `Lineup` of lambdas.hpp has it, its usefulness, and the share of the position.
struct alignas(16) Position {
    double score, power, useful, share;
};

struct PairRule {
    int link, unit, own_origins;  // own_origins: e^s would leave the range of doubles, so each row has an origin
    double margin, near;
};

struct PairPull {
    double force, bend;
};

// The links of forces.hpp, of a document above another.
__device__ PairPull pull_of(const PairRule& rule, const Position& upper, const Position& lower) {
    double delta = rule.unit ? (double)(lower.useful > upper.useful) - (double)(lower.useful < upper.useful)
                             : (lower.useful - upper.useful) * (upper.share - lower.share);
    const double gap = upper.score - lower.score;
    if (rule.near > 0) delta = delta / (rule.near + (gap < 0 ? -gap : gap));
    const double size = delta < 0 ? -delta : delta;
    if (rule.link == 0) {
        const double above = rule.own_origins ? 1.0 : upper.power, below = rule.own_origins ? bounded_exp(lower.score - upper.score) : lower.power;
        const double share = (delta < 0 ? below : above) / (above + below);
        return {-delta * share, size * share * (1.0 - share)};
    }
    const double lead = delta < 0 ? gap : -gap;
    if (!(lead < rule.margin)) return {0, 0};
    if (rule.link == 1) return {-delta, 0};
    return {-delta * (rule.margin - lead), size};
}

__device__ double sum_of_eight(const double* v, int stride) {
    return ((v[0] + v[stride]) + (v[2 * stride] + v[3 * stride])) + ((v[4 * stride] + v[5 * stride]) + (v[6 * stride] + v[7 * stride]));
}

// Forces between the documents of each query, a block for each (lambdas.hpp): a document's are those of the rows above it, one after the other,
// and then the sum of its own row, which is made of eight sums. `order` is the ranking; `useful` is by document and `share` by position; rows are
// limited to `most_rows`. `placed` and `row_sums` are room.
extern "C" __global__ void lambda_forces(const double* score, const double* useful, const double* share, const index_t* order, const index_t* indptr,
                                         const double* weight, const double* document_weight, int unit, int most_rows, int neighbors, int link, double margin,
                                         double near, int normalize, Position* placed, double* row_sums, double* slope, double* curvature) {
    const Query query = query_at(indptr, blockIdx.x);
    const int n = query.n, rows = least(n - 1, most_rows), rows_at_once = blockDim.x < 8 ? 1 : blockDim.x / 8;
    const double query_weight = weight[query.number];
    if (query_weight == 0) {
        for (int p = threadIdx.x; p < n; p += blockDim.x) slope[query.begin + p] = curvature[query.begin + p] = 0;
        return;
    }
    order += query.begin, placed += query.begin, row_sums += 2 * query.begin;
    const double most = score[order[0]], lowest = score[order[n - 1]], middle = lowest + (most - lowest) / 2;
    const bool finite = most - most == 0 && lowest - lowest == 0;
    const PairRule rule = {link, unit, !(most - lowest < 1400), margin, near};
    for (int p = threadIdx.x; p < n; p += blockDim.x) {
        const double own = score[order[p]];
        placed[p] = {own, bounded_exp(own - middle), useful[order[p]], share ? share[query.begin + p] : 0.0};
    }
    double* const lanes = (double*)shared_room;  // forces, curvatures and sizes of some rows
    double* const size = lanes + 24 * rows_at_once;
    if (threadIdx.x == 0) *size = 0;
    __syncthreads();
    for (int first = 0; first < rows; first += rows_at_once) {
        for (int e = threadIdx.x; e < 8 * rows_at_once; e += blockDim.x) {
            const int i = first + e / 8, last = neighbors < n - i ? i + 1 + neighbors : n;
            double force = 0, bend = 0, sizes = 0;
            if (i < rows) {
                const Position upper = placed[i];
                for (int j = i + 1 + e % 8; j < last; j += 8) {
                    const PairPull pull = pull_of(rule, upper, placed[j]);
                    force += pull.force;
                    bend += pull.bend;
                    sizes += pull.force < 0 ? -pull.force : pull.force;
                }
            }
            lanes[3 * e] = force, lanes[3 * e + 1] = bend, lanes[3 * e + 2] = sizes;
        }
        __syncthreads();
        for (int r = threadIdx.x; r < rows_at_once && first + r < rows; r += blockDim.x) {
            row_sums[2 * (first + r)] = sum_of_eight(lanes + 24 * r, 3);
            row_sums[2 * (first + r) + 1] = sum_of_eight(lanes + 24 * r + 1, 3);
        }
        for (int r = 0; normalize && threadIdx.x == 0 && r < rows_at_once && first + r < rows; ++r) *size += sum_of_eight(lanes + 24 * r + 2, 3);
        __syncthreads();
    }
    const bool scaled = normalize && *size > 0;
    const double factor = scaled ? portable_log2(1 + 2 * *size) / (2 * *size) : 1.0;
    for (int p = threadIdx.x; p < n; p += blockDim.x) {
        const Position lower = placed[p];
        double force = 0, bend = 0;
        for (int i = p > neighbors ? p - neighbors : 0; i < least(p, rows); ++i) {
            const PairPull pull = pull_of(rule, placed[i], lower);
            force -= pull.force;
            bend += pull.bend;
        }
        if (p < rows) force += row_sums[2 * p], bend += row_sums[2 * p + 1];
        const index_t d = order[p];
        const double more = document_weight ? document_weight[d] : 1.0;
        slope[d] = finite ? force * factor * query_weight * more : not_a_number();
        curvature[d] = bend * factor * query_weight * more;
    }
}

// What is left of grades less a center after scores (squared_error.hpp), and where `parts` is given its mean by query is left out.
extern "C" __global__ void mean_residuals(const double* score, const double* grades, double center, const double* parts, const index_t* indptr, int queries,
                                          double* means) {
    const index_t q = thread_number();
    if (q >= queries) return;
    double mean = 0;
    for (index_t d = indptr[q]; d < indptr[q + 1]; ++d) mean += (grades[d] - center - score[d]) / parts[d];
    means[q] = mean;
}

extern "C" __global__ void residuals(const double* score, const double* grades, double center, const double* means, const int* query_of_document,
                                     const double* weight, const double* document_weight, index_t documents, double* slope, double* curvature) {
    const index_t d = thread_number();
    if (d >= documents) return;
    const int q = query_of_document[d];
    const double left = grades[d] - center - score[d] - (means ? means[q] : 0.0), more = document_weight ? document_weight[d] : 1.0;
    slope[d] = left * weight[q] * more;
    curvature[d] = 1.0 * weight[q] * more;
}
