// Work shared among threads so that the answer does not depend on how many there are.
//
// Each task writes only its own outputs; sums over tasks are taken afterwards in task order. Threads are
// started per call (tens of microseconds): nothing survives a call, so forking and reloading are safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace exactrank {

// Calls task(i) for i in [0, tasks), each once, on up to `threads` threads. The first exception is rethrown here.
template <class Task>
void parallel_for(std::size_t tasks, int threads, Task&& task) {
    const std::size_t helpers = std::min<std::size_t>(std::max(threads, 1), tasks) - (tasks > 0);
    if (helpers == 0) {
        for (std::size_t i = 0; i < tasks; ++i) task(i);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto work = [&] {
        try {
            for (std::size_t i; (i = next.fetch_add(1)) < tasks;) task(i);
        } catch (...) {
            const std::lock_guard<std::mutex> hold(failure_lock);
            if (!failure) failure = std::current_exception();
            next = tasks;
        }
    };
    std::vector<std::thread> pool;
    for (std::size_t t = 0; t < helpers; ++t) pool.emplace_back(work);
    work();
    for (auto& thread : pool) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Calls body(first, last) over blocks that together cover [0, count); `weight` items make a block worth a task.
template <class Body>
void for_each_block(std::size_t count, std::size_t weight, int threads, Body&& body) {
    const std::size_t blocks = (count + weight - 1) / weight;
    parallel_for(blocks, threads, [&](std::size_t b) { body(b * weight, std::min(count, (b + 1) * weight)); });
}

// Where blocks of queries of about 16k documents begin, and at last where they end: one block is one task.
inline std::vector<std::size_t> query_blocks(const std::int64_t* indptr, std::size_t queries) {
    constexpr std::int64_t documents_per_block = 16384;
    std::vector<std::size_t> starts{0};
    for (std::size_t q = 0; q < queries; ++q)
        if (indptr[q + 1] - indptr[starts.back()] >= documents_per_block) starts.push_back(q + 1);
    if (starts.back() < queries) starts.push_back(queries);
    return starts;
}

// Calls body(scratch, q) for every query of `indptr`, with one Scratch per block.
template <class Scratch, class Body>
void for_each_query(const std::int64_t* indptr, std::size_t queries, int threads, Body&& body) {
    const std::vector<std::size_t> starts = query_blocks(indptr, queries);
    parallel_for(starts.size() - 1, threads, [&](std::size_t b) {
        Scratch scratch;
        for (std::size_t q = starts[b]; q < starts[b + 1]; ++q) body(scratch, q);
    });
}

}  // namespace exactrank
