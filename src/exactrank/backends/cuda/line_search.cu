// Exact line search. Along s + alpha t the rank of a document changes by one where its line crosses another, so a positional measure is
//
//   sum over useful documents i of c_i(rank of i),    c_i(r) a whole number: its worth times the discount of rank r, in fixed point      (1)
//
// and each useful document is a block: its crossings, and the rank after each. Whole numbers add up to the same in any order. The loops of a
// block work for any number of threads.

constexpr int octaves = 121, bins_per_octave = 1024, lowest_exponent = 1023 - 60;
constexpr int half_bins = octaves * bins_per_octave;

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

constexpr int most_threads = 128, no_fall = -0x7fffff00, no_rise = 0x7fffff00;

struct Ends {
    int fall[most_threads], rise[most_threads], left, right;
};

// Ends between which a line can be among the first m ranks. If m lines fall below it at A or later, these are above it before A; if m rise
// above it at B or earlier, they are above it after B. With a group of lines for each thread,
//
//   A = the m-th largest of the groups' last falls,    B = the m-th least of the groups' first rises                                   (2)
//
// rounded outwards. All threads of a block narrow low and high down to (2).
__device__ void narrow(const double* score, const double* slope, const Query& query, const Line& own, int ranks, Ends* ends, double* low, double* high) {
    int fall = no_fall, rise = no_rise;
    for (int j = threadIdx.x; j < query.n; j += blockDim.x) {
        const double s = score[query.begin + j], t = slope[query.begin + j];
        if (t == own.slope) continue;
        const double alpha = (s - own.score) / (own.slope - t);
        if (t > own.slope)
            rise = least(rise, sorting(__double2float_ru(alpha)));
        else
            fall = -least(-fall, -sorting(__double2float_rd(alpha)));
    }
    // No two are equal, by the last bits.
    fall = ends->fall[threadIdx.x] = (fall & -most_threads) - most_threads + threadIdx.x;
    rise = ends->rise[threadIdx.x] = (rise & -most_threads) + most_threads + threadIdx.x;
    __syncthreads();
    int later = 0, sooner = 0;
    for (int g = 0; g < blockDim.x; ++g) later += ends->fall[g] > fall, sooner += ends->rise[g] < rise;
    if (later == ranks - 1) ends->left = fall;
    if (sooner == ranks - 1) ends->right = rise;
    __syncthreads();
    const double first = ends->left > no_fall ? float_of(ends->left) : -largest_number, last = ends->right < no_rise ? float_of(ends->right) : largest_number;
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

// What is asked of the useful documents. Without `wanted` their events are added to histograms of all changes and of those that rise; with it
// those in the bins that are wanted are listed, in no order: where, the change, and with a third column the change to the place itself.
struct Asked {
    const double* discount;
    int cutoff;
    unsigned long long *change, *rise;
    const unsigned char* wanted;
    unsigned long long* listed;
    index_t capacity, *events;
    int columns;

    __device__ index_t contribution(double worth, int rank) const { return rank < cutoff ? llrint(worth * discount[rank]) : 0; }

    // A document's rank changes at a place, where it is tied with others.
    __device__ void tell(double worth, index_t place, int was, int tied, int is) const {
        if (least(was, least(is, tied)) >= cutoff) return;
        const index_t before = contribution(worth, was), step = contribution(worth, is) - before;
        const index_t to_place = columns == 3 ? contribution(worth, tied) - before : 0;
        if (step == 0 && to_place == 0) return;
        const double alpha = unsorted(place);
        const int bin = bin_of(alpha);
        if (!wanted) {
            atomicAdd(&change[bin], (unsigned long long)step);
            if (step > 0) atomicAdd(&rise[bin], (unsigned long long)step);
        } else if (wanted[bin]) {
            const index_t slot = (index_t)atomicAdd(listed, 1ULL);
            if (slot >= capacity) return;
            index_t* event = events + slot * columns;
            event[0] = __double_as_longlong(alpha), event[1] = step;
            if (columns == 3) event[2] = to_place;
        }
    }
};

__device__ int step_of(index_t crossing) { return crossing & rises_bit ? 1 : -1; }
__device__ int tied_step_of(index_t crossing) { return (crossing & above_bit ? 1 : 0) - (crossing & rises_bit ? 0 : 1); }

// Tells of few crossings: the rank before each comes from a look at all.
__device__ void tell_few(const Asked& asked, double worth, const Found& found, const index_t* crossing) {
    for (int e = threadIdx.x; e < found.count; e += blockDim.x) {
        const index_t place = crossing[e] & place_bits;
        int was = found.above, step = 0, tied_step = 0, first = e;
        for (int f = 0; f < found.count; ++f) {
            const index_t other = crossing[f], there = other & place_bits;
            if (there < place) was += step_of(other);
            if (there != place) continue;
            step += step_of(other), tied_step += tied_step_of(other);
            first = least(first, f);
        }
        if (first == e) asked.tell(worth, place, was, was + tied_step, was + step);
    }
}

// Tells of many: they are sorted, and each thread goes through as many as the others, from the rank that those before leave.
__device__ void tell_many(const Asked& asked, double worth, const Found& found, index_t* crossing) {
    __shared__ int sums[most_threads];
    sort_together(crossing, found.count);
    const int each = (found.count + blockDim.x - 1) / blockDim.x, first = least(threadIdx.x * each, found.count), last = least(first + each, found.count);
    int moved = 0;
    for (int e = first; e < last; ++e) moved += step_of(crossing[e]);
    sums[threadIdx.x] = moved;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        const int before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    int rank = found.above + sums[threadIdx.x] - moved;
    for (int e = first; e < last;) {  // places, each by the thread that has its first crossing
        const index_t place = crossing[e] & place_bits;
        const bool is_own = e == 0 || (crossing[e - 1] & place_bits) != place;
        const int was = rank, end = is_own ? found.count : last;
        int tied = rank;
        for (; e < end && (crossing[e] & place_bits) == place; ++e) rank += step_of(crossing[e]), tied += tied_step_of(crossing[e]);
        if (is_own) asked.tell(worth, place, was, tied, rank);
    }
}

// Where a bin begins.
__device__ double lower_edge(int bin) {
    const int distance = bin < half_bins ? half_bins - bin : bin - half_bins;
    double size = __longlong_as_double(((index_t)distance + (index_t)lowest_exponent * bins_per_octave) << 42);
    size = distance == 0 ? 0 : distance == half_bins ? largest_number : size;
    return bin < half_bins ? -size : size;
}

// The first and last bin that are wanted, as their distances from beyond the other end, so that both begin as 0.
struct Window {
    unsigned long long from_right, from_left;
};

constexpr int few_crossings = 64, start_cells = 1024;

// The events of `count` useful documents, a block for each. What they contribute right after low is added to the cells of `starts`. `reach`
// gets the ends between which it can be among the ranks that count; together with a `window` both are read instead, and set low and high.
extern "C" __global__ void line_events(const double* score, const double* slope, const double* key, const double* worth, const index_t* useful,
                                       const int* query_of_useful, int count, const index_t* indptr, const double* discount, int cutoff, double low, double high,
                                       index_t* room, int room_each, unsigned long long* starts, double* reach, const Window* window, unsigned long long* change,
                                       unsigned long long* rise, const unsigned char* wanted, unsigned long long* listed, index_t capacity, int columns,
                                       index_t* events) {
    __shared__ Found found;
    __shared__ Ends ends;
    const Asked asked = {discount, cutoff, change, rise, wanted, listed, capacity, events, columns};
    index_t* crossing = room ? room + (index_t)blockIdx.x * room_each : shared_room;
    if (window) {  // a little more, since crossings are rounded: what is in other bins is left out
        const double left = lower_edge(2 * half_bins - (int)window->from_right), right = lower_edge((int)window->from_left);
        low = fmax(low, left - fabs(left) * 1e-9 - 1e-300), high = fmin(high, right + fabs(right) * 1e-9 + 1e-300);
    }
    for (int u = blockIdx.x; u < count; u += gridDim.x) {
        const index_t d = useful[u];
        const Query query = query_at(indptr, query_of_useful[u]);
        const Line own = {score[d], slope[d], d};
        double first = window ? fmax(low, reach[2 * u]) : low, last = window ? fmin(high, reach[2 * u + 1]) : high;
        if (reach && !window && cutoff <= blockDim.x && 2 * cutoff <= query.n) narrow(score, slope, query, own, cutoff, &ends, &first, &last);
        if (threadIdx.x == 0) found = {0, 0, 0};
        __syncthreads();
        if (first < last) list_crossings(score, slope, key, query, own, first, last, columns == 3, &found, crossing);
        __syncthreads();
        const bool counts = first < last && found.stay < cutoff;  // else never among the ranks that count
        if (threadIdx.x == 0 && starts && counts && found.above < cutoff)
            atomicAdd(&starts[u % start_cells], (unsigned long long)asked.contribution(worth[d], found.above));
        if (threadIdx.x == 0 && reach && !window) reach[2 * u] = counts ? first : 1.0, reach[2 * u + 1] = counts ? last : 0.0;
        if (counts && found.count <= few_crossings)
            tell_few(asked, worth[d], found, crossing);
        else if (counts)
            tell_many(asked, worth[d], found, crossing);
        __syncthreads();
    }
}

// The bins in which the function can be as large as `least` or, where that is NaN, as at some bin's edge, up to `slack`. `after` holds the
// value after each bin, `most` the largest of them, or that before all.
extern "C" __global__ void choose_bins(const index_t* change, const index_t* rise, const index_t* after, const index_t* most, double least, double slack,
                                       unsigned char* wanted) {
    const index_t bin = thread_number();
    if (bin >= 2 * half_bins) return;
    const double threshold = least == least ? least : (double)*most;
    wanted[bin] = (double)(after[bin] - change[bin]) + (double)rise[bin] >= threshold - slack;
}

// Does a run of wanted bins begin there, or end?
__device__ bool begins(const unsigned char* wanted, index_t bin) { return wanted[bin] && (bin == 0 || !wanted[bin - 1]); }
__device__ bool ends(const unsigned char* wanted, index_t bin) { return wanted[bin] && (bin == 2 * half_bins - 1 || !wanted[bin + 1]); }

// Of wanted bins only those have to be told in which something happens, or where a run begins or ends. The window lies around all.
extern "C" __global__ void mark_bins(const index_t* change, const index_t* rise, const unsigned char* wanted, int* told, Window* window) {
    const index_t bin = thread_number();
    if (bin >= 2 * half_bins) return;
    const bool first = begins(wanted, bin), last = ends(wanted, bin);
    told[bin] = first || last || (wanted[bin] && (change[bin] || rise[bin]));
    if (first) atomicMax(&window->from_right, (unsigned long long)(2 * half_bins - bin));
    if (last) atomicMax(&window->from_left, (unsigned long long)(bin + 1));
}

// Tells those bins in their order, each with the value before it; `number` counts those up to each bin, and the last goes to `count`. The
// last two bits say whether a run begins there, and whether it ends.
extern "C" __global__ void tell_bins(const index_t* change, const index_t* after, const unsigned char* wanted, const int* number, index_t* count,
                                     index_t* bins) {
    const index_t bin = thread_number();
    if (bin >= 2 * half_bins) return;
    if (bin == 2 * half_bins - 1) *count = number[bin];
    const int before = bin == 0 ? 0 : number[bin - 1];
    if (number[bin] == before) return;
    bins[2 * before] = 4 * bin + 2 * begins(wanted, bin) + ends(wanted, bin);
    bins[2 * before + 1] = after[bin] - change[bin];
}

// Adds a feature to scores, times its weight; rounded as on the processor, product by product.
extern "C" __global__ void add_feature(const float* feature, double weight, index_t documents, double* score) {
    const index_t d = thread_number();
    if (d < documents) score[d] = __dadd_rn(score[d], __dmul_rn(weight, (double)feature[d]));
}

// What each document contributes, by position.
extern "C" __global__ void contributions(const double* worth, const index_t* order, const index_t* indptr, int queries, index_t documents,
                                         const double* discount, int cutoff, index_t* found) {
    const index_t at = thread_number();
    if (at >= documents) return;
    const int rank = (int)(at - query_of(indptr, queries, at).begin);
    found[at] = rank < cutoff ? llrint(worth[order[at]] * discount[rank]) : 0;
}
