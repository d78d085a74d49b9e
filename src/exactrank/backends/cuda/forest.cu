// Growing trees (src/native/trees): the documents of a tree in its nodes, and histograms of forces in whole numbers.
//
// Sums are of whole numbers, so that blocks may add theirs in any order: trees have the same bits as on the processor. A split moves the rows of
// a node from one of two buffers to the same place in the other, as `node_rows.hpp` does; blocks take room from both ends as they come.

typedef unsigned long long word_t;
typedef unsigned char byte_t;

constexpr int slope_shift = 37, bend_shift = 13;  // of a packed force, as in histogram.hpp
constexpr word_t bend_mask = (1ULL << 24) - 1;

// (1) of histogram.hpp.
__device__ word_t packed_force(double slope, double bend, double per_slope, double per_bend) {
    const double shift = 6755399441055744.0;  // 1.5 * 2^52, where doubles are one apart
    const index_t whole = (index_t)((slope * per_slope + shift) - shift);
    index_t curved = (index_t)((bend * per_bend + shift) - shift);
    if (bend > 0 && curved == 0) curved = 1;
    return ((word_t)whole << slope_shift) + ((word_t)curved << bend_shift) + 1;
}

// The rows of a node, and how many of them the blocks that split it have put to the left and to the right.
struct Run {
    int first, last, buffer, lefts, rights;
};

struct Buffers {
    int* rows[2];
    word_t* forces[2];
};

// The bins of 16 features of a row.
struct alignas(16) Bins {
    unsigned words[4];
};

// A split of a node, by the place of its feature; a tile of -1 is a column of two bytes.
struct Cut {
    int node, left, right, tile, slot, kind, last_bin, bin, missing_left, categories, words;
};

struct Matrix {
    const byte_t* tiles;
    const unsigned short* columns;
    index_t rows;

    __device__ unsigned bin(const Cut& cut, index_t row) const {
        return cut.tile < 0 ? columns[cut.slot * rows + row] : tiles[(cut.tile * rows + row) * 16 + cut.slot];
    }
};

// SplitSearch::goes_left of split.hpp.
__device__ bool goes_left(const Cut& cut, const word_t* categories, unsigned bin) {
    if (cut.kind == 2) return (int)(bin / 64) < cut.words && (categories[cut.categories + bin / 64] >> bin % 64 & 1);
    if (cut.kind == 1 && bin == (unsigned)cut.last_bin) return cut.missing_left;
    return bin <= (unsigned)cut.bin;
}

constexpr int rows_per_thread = 8;

// Room of a block that divides rows: as many per thread.
struct Division {
    word_t* forces;
    int *rows, *counts, *places;

    __device__ Division() {
        const int rows_at_once = blockDim.x * rows_per_thread;
        forces = (word_t*)shared_room;
        rows = (int*)(forces + rows_at_once);
        counts = rows + rows_at_once;
        places = counts + blockDim.x;
    }
};

// Turns the count of each thread into the sum up to it.
__device__ void add_up(int* counts) {
    for (int distance = 1; distance < blockDim.x; distance *= 2) {
        const int more = threadIdx.x >= distance ? counts[threadIdx.x - distance] : 0;
        __syncthreads();
        counts[threadIdx.x] += more;
        __syncthreads();
    }
}

// Moves rows of which each thread has some, one after the other: the lowest bits of `sides` are 1 for those on the left. Those on the right
// follow them in `division`, and go to the back of the run, or nowhere where `drops` says so.
template <class RowAt>
__device__ void divide(const Division& division, int count, unsigned sides, bool drops, const RowAt& row_at, Run& run, int* to_rows, word_t* to_forces) {
    const int first = threadIdx.x * rows_per_thread, mine = count - first < 0 ? 0 : least(count - first, rows_per_thread);
    int lefts = 0;
    for (int k = 0; k < mine; ++k) lefts += sides >> k & 1;
    division.counts[threadIdx.x] = lefts;
    __syncthreads();
    add_up(division.counts);
    const int all_lefts = division.counts[blockDim.x - 1];
    if (threadIdx.x == 0) {
        division.places[0] = run.first + atomicAdd(&run.lefts, all_lefts);
        division.places[1] = run.last - count + all_lefts - atomicAdd(&run.rights, count - all_lefts);
    }
    int left = division.counts[threadIdx.x] - lefts, right = all_lefts + least(first, count) - left;
    for (int k = 0; k < mine; ++k) row_at(k, sides >> k & 1 ? left++ : right++);
    __syncthreads();
    for (int e = threadIdx.x; e < (drops ? all_lefts : count); e += blockDim.x) {
        const int at = e < all_lefts ? division.places[0] + e : division.places[1] + e - all_lefts;
        to_rows[at] = division.rows[e];
        to_forces[at] = division.forces[e];
    }
    __syncthreads();
}

// Puts the documents that are chosen into node 0, or all where `chosen` is null, with their forces.
extern "C" __global__ void begin_tree(const byte_t* chosen, const double* slope, const double* bend, double per_slope, double per_bend, index_t rows, int* to_rows,
                                      word_t* to_forces, Run* runs) {
    const Division division;
    const int at_once = blockDim.x * rows_per_thread;
    for (index_t begin = (index_t)blockIdx.x * at_once; begin < rows; begin += (index_t)gridDim.x * at_once) {
        const int count = rows - begin < at_once ? (int)(rows - begin) : at_once;
        const index_t own = begin + threadIdx.x * rows_per_thread;
        unsigned sides = 0;
        for (int k = 0; k < rows_per_thread && own + k < rows; ++k) sides |= (unsigned)(!chosen || chosen[own + k]) << k;
        auto put = [&](int k, int at) {
            division.rows[at] = (int)(own + k);
            division.forces[at] = packed_force(slope[own + k], bend[own + k], per_slope, per_bend);
        };
        divide(division, count, sides, true, put, runs[0], to_rows, to_forces);
    }
}

extern "C" __global__ void begin_root(Run* runs, index_t rows) {
    if (thread_number() == 0) runs[0] = {0, (int)rows, 0, 0, 0};
}

extern "C" __global__ void end_root(Run* runs) {
    if (thread_number() == 0) runs[0] = {0, runs[0].lefts, 0, 0, 0};
}

// Splits nodes, `pieces` blocks for each.
extern "C" __global__ void split_nodes(const byte_t* tiles, const unsigned short* columns, index_t rows, const Cut* cuts, const word_t* categories, int pieces,
                                       int* rows0, int* rows1, word_t* forces0, word_t* forces1, Run* runs) {
    const Division division;
    const Matrix matrix = {tiles, columns, rows};
    const Cut cut = cuts[blockIdx.x / pieces];
    Run& run = runs[cut.node];
    const int *from_rows = run.buffer ? rows1 : rows0, at_once = blockDim.x * rows_per_thread;
    const word_t* from_forces = run.buffer ? forces1 : forces0;
    int* to_rows = run.buffer ? rows0 : rows1;
    word_t* to_forces = run.buffer ? forces0 : forces1;
    for (int begin = run.first + (int)(blockIdx.x % pieces) * at_once; begin < run.last; begin += pieces * at_once) {
        const int count = least(at_once, run.last - begin), own = begin + threadIdx.x * rows_per_thread;
        int row[rows_per_thread];
        unsigned sides = 0;
#pragma unroll
        for (int k = 0; k < rows_per_thread; ++k) row[k] = own + k < begin + count ? from_rows[own + k] : -1;
#pragma unroll
        for (int k = 0; k < rows_per_thread; ++k)
            if (row[k] >= 0) sides |= (unsigned)goes_left(cut, categories, matrix.bin(cut, row[k])) << k;
        auto put = [&](int k, int at) {
            division.rows[at] = from_rows[own + k];
            division.forces[at] = from_forces[own + k];
        };
        divide(division, count, sides, false, put, run, to_rows, to_forces);
    }
}

// The runs of the children of nodes that were split.
extern "C" __global__ void end_splits(const Cut* cuts, int count, Run* runs) {
    const index_t c = thread_number();
    if (c >= count) return;
    const Run run = runs[cuts[c].node];
    const int middle = run.first + run.lefts;
    runs[cuts[c].left] = {run.first, middle, 1 - run.buffer, 0, 0};
    runs[cuts[c].right] = {middle, run.last, 1 - run.buffer, 0, 0};
}

// What a node's rows are cut into: a piece of at least `least_rows`.
__device__ Run piece_of(const Run& run, int piece, int pieces, int least_rows) {
    const int count = run.last - run.first, share = (count + pieces - 1) / pieces, length = share < least_rows ? least_rows : share;
    const index_t first = run.first + (index_t)piece * length;
    if (first >= run.last) return {0, 0, run.buffer, 0, 0};
    return {(int)first, first + length < run.last ? (int)first + length : run.last, run.buffer, 0, 0};
}

// The bytes from number `by` on, the first ones behind the last.
__device__ Bins rotated(const Bins& bins, int by) {
    unsigned a = bins.words[0], b = bins.words[1], c = bins.words[2], d = bins.words[3], t;
    if (by & 4) t = a, a = b, b = c, c = d, d = t;
    if (by & 8) t = a, a = c, c = t, t = b, b = d, d = t;
    const int shift = 8 * (by & 3);
    return {{__funnelshift_r(a, b, shift), __funnelshift_r(b, c, shift), __funnelshift_r(c, d, shift), __funnelshift_r(d, a, shift)}};
}

// Adds the forces of rows to the histograms of `wanted` nodes. A block takes some rows of a node and a tile. It has sums of 32 bits for slopes,
// curvatures and counts, so it takes at most 2^17 rows. Threads of a warp begin with different features, and the upper half has sums of its own:
// then each thread has a bank of memory to itself, and no two ever wait for each other. `places` has the first cell of each slot's feature, -1
// where it is not wanted, and its number of bins.
extern "C" __global__ void tile_sums(const Bins* matrix, index_t rows, const Run* runs, const int* wanted, const int* tile_numbers, const int* places, int tiles,
                                     int pieces, int least_rows, int bins, int count_bits, const int* rows0, const int* rows1, const word_t* forces0,
                                     const word_t* forces1, word_t* histograms, index_t cells) {
    const int piece = blockIdx.x % pieces, t = blockIdx.x / pieces % tiles, w = blockIdx.x / pieces / tiles;
    const Run run = piece_of(runs[wanted[w]], piece, pieces, least_rows);
    if (run.first == run.last) return;
    const int* node_rows = run.buffer ? rows1 : rows0;
    const word_t* forces = run.buffer ? forces1 : forces0;
    const Bins* tile = matrix + tile_numbers[t] * rows;
    unsigned* const sums = (unsigned*)shared_room;
    const int plane = bins * 32, turn = threadIdx.x & 15;
    for (int e = threadIdx.x; e < 3 * plane; e += blockDim.x) sums[e] = 0;
    __syncthreads();
    unsigned* const half = sums + (threadIdx.x & 16);
    for (int i = run.first + threadIdx.x; i < run.last; i += blockDim.x) {
        const Bins row = rotated(tile[node_rows[i]], turn);
        const word_t force = forces[i];
        const unsigned slope = (unsigned)(int)((index_t)force >> slope_shift), bend = (unsigned)(force >> bend_shift & bend_mask);
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            unsigned* const cell = half + (row.words[k / 4] >> 8 * (k % 4) & 255) * 32 + ((turn + k) & 15);
            atomicAdd(cell, slope);
            atomicAdd(cell + plane, bend);
            atomicAdd(cell + 2 * plane, 1u);
        }
    }
    __syncthreads();
    word_t* const out = histograms + 2 * cells * w;
    for (int e = threadIdx.x; e < bins * 16; e += blockDim.x) {  // eight neighboring cells of a feature at a time
        const int bin = (e >> 7) * 8 + (e & 7), slot = e >> 3 & 15, place = places[2 * (16 * t + slot)];
        if (place < 0 || bin >= places[2 * (16 * t + slot) + 1]) continue;
        const unsigned* const at = sums + bin * 32 + slot;
        const unsigned count = at[2 * plane] + at[2 * plane + 16];
        if (count == 0) continue;
        const index_t slope = (index_t)(int)at[0] + (int)at[16];
        atomicAdd(out + place + bin, (word_t)slope);
        atomicAdd(out + cells + place + bin, ((word_t)(at[plane] + at[plane + 16]) << count_bits) + count);
    }
}

// The same for features of more than 256 bins; `places` has the column and the first cell of each.
extern "C" __global__ void column_sums(const unsigned short* columns, index_t rows, const Run* runs, const int* wanted, const int* places, int features, int pieces,
                                       int least_rows, int count_bits, const int* rows0, const int* rows1, const word_t* forces0, const word_t* forces1,
                                       word_t* histograms, index_t cells) {
    const int piece = blockIdx.x % pieces, f = blockIdx.x / pieces % features, w = blockIdx.x / pieces / features;
    const Run run = piece_of(runs[wanted[w]], piece, pieces, least_rows);
    const int* node_rows = run.buffer ? rows1 : rows0;
    const word_t* forces = run.buffer ? forces1 : forces0;
    const unsigned short* column = columns + places[2 * f] * rows;
    word_t* const out = histograms + 2 * cells * w + places[2 * f + 1];
    for (int i = run.first + threadIdx.x; i < run.last; i += blockDim.x) {
        const word_t force = forces[i];
        const int bin = column[node_rows[i]];
        atomicAdd(out + bin, (word_t)((index_t)force >> slope_shift));
        atomicAdd(out + cells + bin, ((force >> bend_shift & bend_mask) << count_bits) + 1);
    }
}

// Adds to a sum of 64 bits by its halves.
__device__ void add_wide(unsigned* halves, word_t more) {
    const unsigned low = (unsigned)more, was = atomicAdd(halves, low);
    atomicAdd(halves + 1, (unsigned)(more >> 32) + (was + low < low));
}

// The leaf of each document, and the sums of the forces of those chosen over each leaf in small units; blocks have sums of their own where
// `in_shared_memory`.
extern "C" __global__ void settle_documents(const byte_t* tiles, const unsigned short* columns, index_t rows, const Cut* cuts, int splits,
                                            const word_t* categories, const byte_t* chosen, const double* slope, const double* bend, double per_slope,
                                            double per_bend, int in_shared_memory, int* leaf, word_t* sums) {
    const Matrix matrix = {tiles, columns, rows};
    unsigned* const halves = (unsigned*)(in_shared_memory ? (word_t*)shared_room : sums);
    const int leaves = splits + 1;
    for (int e = threadIdx.x; in_shared_memory && e < 4 * leaves; e += blockDim.x) halves[e] = 0;
    __syncthreads();
    for (index_t d = thread_number(); d < rows; d += (index_t)gridDim.x * blockDim.x) {
        int node = splits ? 0 : ~0;
        while (node >= 0) node = goes_left(cuts[node], categories, matrix.bin(cuts[node], d)) ? cuts[node].left : cuts[node].right;
        leaf[d] = ~node;
        if (chosen && !chosen[d]) continue;
        add_wide(halves + 2 * ~node, (word_t)(index_t)nearbyint(slope[d] * per_slope));
        add_wide(halves + 2 * (leaves + ~node), (word_t)(index_t)nearbyint(bend[d] * per_bend));
    }
    __syncthreads();
    for (int e = threadIdx.x; in_shared_memory && e < 2 * leaves; e += blockDim.x)
        if (const word_t sum = ((word_t)halves[2 * e + 1] << 32) + halves[2 * e]) atomicAdd(sums + e, sum);
}

extern "C" __global__ void add_leaf_values(const int* leaf, const double* values, index_t rows, double* scores) {
    const index_t d = thread_number();
    if (d < rows) scores[d] += values[leaf[d]];
}
