// Kernels over lists of any length: one thread per document or query, or one block where documents are sorted.
//
// Nothing is padded, and numbers are added up in a fixed order, in doubles, or as whole numbers: the same input gives the same bits. `indptr`
// says where each query's documents begin; `order` holds documents by position, best first. REAL is the type of scores: float or double.

typedef long long index_t;
typedef REAL real;
__device__ const double largest_number = 1.7976931348623157e308;

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

__device__ double not_a_number() { return __longlong_as_double(0x7ff8000000000000LL); }

__device__ int least(int a, int b) { return a < b ? a : b; }

// Whole numbers that sort as floats and doubles do; for floats also the way back.
__device__ int sorting(float x) {
    const int bits = __float_as_int(x);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
__device__ index_t sorting(double x) {
    const index_t bits = __double_as_longlong(x);
    return bits ^ ((bits >> 63) & 0x7fffffffffffffffLL);
}
__device__ float float_of(int number) { return __int_as_float(number ^ ((number >> 31) & 0x7fffffff)); }

// Sorts numbers, the least first; all threads of a block call it. A bitonic network in which every exchange puts the lesser first, so that
// nothing has to fill the list up to a power of 2.
template <class T>
__device__ void sort_together(T* list, int n) {
    for (int width = 2; width < 2 * n; width *= 2)
        for (int distance = width / 2; distance > 0; distance /= 2) {
            for (int e = threadIdx.x; 2 * e < n + width; e += blockDim.x) {
                const int within = e & (distance - 1), i = 2 * e - within;
                const int j = distance == width / 2 ? i - within + width - 1 - within : i + distance;
                if (j < n && list[j] < list[i]) {
                    const T greater = list[i];
                    list[i] = list[j];
                    list[j] = greater;
                }
            }
            __syncthreads();
        }
}

struct alignas(8) Ranked {
    decltype(sorting(real())) falling;  // less for a larger score
    int tie;                            // which of equal scores comes first

    __device__ index_t both() const { return (index_t)((unsigned long long)falling << 32 | (unsigned)tie); }
    __device__ bool operator<(const Ranked& other) const {
        if constexpr (sizeof(real) == 4) return both() < other.both();
        return falling != other.falling ? falling < other.falling : tie < other.tie;
    }
};

extern __shared__ index_t shared_room[];

// Ranks: largest score first, NaN last; of equal scores the one that `ties`, documents by query, has first, or the order given. Sorts the
// queries of as many documents as said, in `room` or, where that is null, in the memory of the block. `factor`, where given, gets the weight of
// each query, 1 where there are none, or NaN where a score is no finite number.
extern "C" __global__ void sort_documents(const real* score, const index_t* ties, const index_t* indptr, int shortest, int longest, Ranked* room, index_t* order,
                                          const double* weight, double* factor) {
    const Query query = query_at(indptr, blockIdx.x);
    if (query.n < shortest || query.n > longest) return;
    Ranked* list = room ? room + query.begin : (Ranked*)shared_room;
    bool finite = true;
    for (int e = threadIdx.x; e < query.n; e += blockDim.x) {
        const real own = score[ties ? ties[query.begin + e] : query.begin + e];
        const real last = largest_number;  // infinite as a float
        list[e] = {own != own ? ~sorting(-last - last) + 1 : ~sorting(own == 0 ? (real)0 : own), e};
        finite = finite && own - own == 0;
    }
    if (factor && threadIdx.x == 0) factor[query.number] = weight ? weight[query.number] : 1;
    __syncthreads();
    if (factor && !finite) factor[query.number] = not_a_number();
    sort_together(list, query.n);
    for (int e = threadIdx.x; e < query.n; e += blockDim.x) order[query.begin + e] = ties ? ties[query.begin + list[e].tie] : query.begin + list[e].tie;
}

// The same factors alone.
extern "C" __global__ void query_factors(const real* score, const double* weight, const index_t* indptr, int queries, double* factor) {
    const index_t q = thread_number();
    if (q >= queries) return;
    bool finite = true;
    for (index_t d = indptr[q]; d < indptr[q + 1]; ++d) finite = finite && score[d] - score[d] == 0;
    factor[q] = !finite ? not_a_number() : weight ? weight[q] : 1;
}

// How many documents of each query were retrieved: those whose score is above -inf.
extern "C" __global__ void count_retrieved(const real* score, const index_t* indptr, int queries, int* retrieved) {
    const index_t q = thread_number();
    if (q >= queries) return;
    int found = 0;
    for (index_t d = indptr[q]; d < indptr[q + 1]; ++d) found += score[d] > -largest_number;
    retrieved[q] = found;
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
extern "C" __global__ void scale_by_query(real* numbers, const double* factor, const index_t* indptr, int queries, index_t documents) {
    const index_t d = thread_number();
    if (d < documents) numbers[d] = (real)(numbers[d] * factor[query_of(indptr, queries, d).number]);
}
