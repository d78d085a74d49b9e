// Work shared among threads so that the answer does not depend on how many there are.
//
// Each task writes only its own outputs; sums over tasks are taken afterwards in task order. Threads are
// started per call (tens of microseconds): nothing survives a call, so forking and reloading are safe. Where the system
// refuses a thread, those that there are do the work. One that fails, or Ctrl-C, makes all of them stop soon.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/interrupt.hpp"

namespace exactrank {

// The threads of one call: the one that called, and its helpers. The first exception of any is the call's.
class Crew {
public:
    // Runs `work` on this thread and on up to `helpers` others.
    template <class Work>
    void run(std::size_t helpers, Work& work) {
        start(helpers, [&] { guarded(false, work); });
        guarded(true, work);
        await();
        for (std::thread& helper : helpers_) helper.join();
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    template <class Help>
    void start(std::size_t helpers, Help help) {
        try {
            helpers_.reserve(helpers);
            for (std::size_t h = 0; h < helpers; ++h) {
                helpers_.emplace_back([this, help] {
                    help();
                    const std::lock_guard<std::mutex> hold(lock_);
                    ++ended_;
                    all_ended_.notify_one();
                });
            }
        } catch (const std::system_error&) {  // no thread is to be had
        } catch (const std::bad_alloc&) {     // nor memory for one
        }
    }
    template <class Work>
    void guarded(bool asks, Work& work) noexcept {
        const Call outer = std::exchange(current_call, {&given_up_, asks, current_call.next_look});
        try {
            work();
        } catch (...) {
            fail();
        }
        current_call.given_up = outer.given_up, current_call.asks = outer.asks;
    }
    // Waits for the helpers, and goes on asking about signals meanwhile.
    void await() {
        std::unique_lock<std::mutex> hold(lock_);
        while (!all_ended_.wait_for(hold, between_looks, [&] { return ended_ == helpers_.size(); })) {
            hold.unlock();
            auto look = [] { breathe(); };
            if (!given_up_) guarded(current_call.asks, look);
            hold.lock();
        }
    }
    void fail() {
        const std::lock_guard<std::mutex> hold(lock_);
        if (!failure_) failure_ = std::current_exception();
        given_up_ = true;
    }
    std::vector<std::thread> helpers_;
    std::mutex lock_;
    std::condition_variable all_ended_;
    std::size_t ended_ = 0;
    std::exception_ptr failure_;
    std::atomic<bool> given_up_{false};
};

// Calls task(i) for i in [0, tasks), each once, on up to `threads` threads. The first exception is rethrown here.
template <class Task>
void parallel_for(std::size_t tasks, int threads, Task&& task) {
    std::atomic<std::size_t> next{0};
    auto work = [&] {
        for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
            breathe();
            task(i);
        }
    };
    const std::size_t helpers = std::min<std::size_t>(std::max(threads, 1), tasks) - (tasks > 0);
    helpers == 0 ? work() : Crew().run(helpers, work);
}

// The threads of a call that does many short pieces of work one after the other, each shared among all of them. Helpers wait between pieces
// instead of being started anew. A helper that the system does not run is not waited for, unless it is in the midst of a task.
class Team {
public:
    // Runs lead(team) on this thread, beside up to threads - 1 helpers.
    template <class Lead>
    static void run(int threads, Lead&& lead) {
        Team team(std::max(threads, 1));
        const std::thread::id leader = std::this_thread::get_id();
        auto work = [&] {
            if (std::this_thread::get_id() != leader) return team.help();
            try {
                lead(team);
            } catch (...) {
                team.end();
                throw;
            }
            team.end();
        };
        team.threads_ == 1 ? work() : Crew().run(team.threads_ - 1, work);
    }

    int threads() const { return threads_; }

    // Calls task(i) for i in [0, tasks), each once, and returns when all have ended. The first exception is rethrown here.
    template <class Task>
    void for_each(std::size_t tasks, Task&& task) {
        if (threads_ == 1 || tasks <= 1) {
            for (std::size_t i = 0; i < tasks; ++i) breathe(), task(i);
            return;
        }
        call_ = [](void* context, std::size_t i) { (*static_cast<std::remove_reference_t<Task>*>(context))(i); };
        context_ = const_cast<void*>(static_cast<const void*>(&task));
        for (std::size_t first = 0; first < tasks; first += most_tasks) share(std::min(tasks - first, most_tasks), first);
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

private:
    // A ticket holds the number of the piece of work, how many tasks it has, and the next of them: so a claim is of one piece for certain.
    static constexpr int task_bits = 20;
    static constexpr std::size_t most_tasks = (std::size_t{1} << task_bits) - 4097;  // helpers may count a little beyond the last
    static constexpr std::uint64_t task_mask = (std::uint64_t{1} << task_bits) - 1;

    explicit Team(int threads) : threads_(threads) {}

    static bool is_open(std::uint64_t ticket) { return (ticket & task_mask) < (ticket >> task_bits & task_mask); }

    void share(std::size_t tasks, std::size_t first) {
        first_ = first;
        done_.store(0, std::memory_order_relaxed);
        ticket_.store(++pieces_ << 2 * task_bits | tasks << task_bits, std::memory_order_release);
        ticket_.notify_all();
        work();
        for (int spins = 0; done_.load(std::memory_order_acquire) < tasks;)
            if (++spins > 4096) std::this_thread::yield();
    }
    void work() {
        while (is_open(ticket_.load(std::memory_order_acquire))) {
            const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_acq_rel);
            if (!is_open(ticket)) return;
            try {
                if (!failed_.load(std::memory_order_relaxed)) breathe(), call_(context_, first_ + (ticket & task_mask));
            } catch (...) {
                if (!failed_.exchange(true)) failure_ = std::current_exception();
            }
            done_.fetch_add(1, std::memory_order_acq_rel);
        }
    }
    void help() {
        for (int spins = 0; !ended_.load(std::memory_order_acquire);) {
            const std::uint64_t seen = ticket_.load(std::memory_order_acquire);
            if (is_open(seen)) {
                work();
                spins = 0;
            } else if (++spins > 4096) {
                ticket_.wait(seen, std::memory_order_acquire);
            }
        }
    }
    void end() {
        ended_.store(true, std::memory_order_release);
        ticket_.fetch_add(1, std::memory_order_acq_rel);  // so that those that wait look again
        ticket_.notify_all();
    }

    const int threads_;
    void (*call_)(void*, std::size_t) = nullptr;
    void* context_ = nullptr;
    std::size_t first_ = 0;
    std::uint64_t pieces_ = 0;
    std::atomic<std::uint64_t> ticket_{0}, done_{0};
    std::atomic<bool> ended_{false}, failed_{false};
    std::exception_ptr failure_;
};

// Calls body(first, last) over blocks that together cover [0, count); `weight` items make a block worth a task.
template <class Body>
void for_each_block(std::size_t count, std::size_t weight, int threads, Body&& body) {
    const std::size_t blocks = (count + weight - 1) / weight;
    parallel_for(blocks, threads, [&](std::size_t b) { body(b * weight, std::min(count, (b + 1) * weight)); });
}

// Where blocks of queries of about 16k documents begin, and at last where they end: one block is one task.
inline std::vector<std::size_t> query_blocks(std::span<const std::int64_t> indptr) {
    constexpr std::int64_t documents_per_block = 16384;
    const std::size_t queries = indptr.size() - 1;
    std::vector<std::size_t> starts{0};
    for (std::size_t q = 0; q < queries; ++q)
        if (indptr[q + 1] - indptr[starts.back()] >= documents_per_block) starts.push_back(q + 1);
    if (starts.back() < queries) starts.push_back(queries);
    return starts;
}

// Calls body(scratch, q) for every query of `indptr`, with one Scratch per block.
template <class Scratch, class Body>
void for_each_query(std::span<const std::int64_t> indptr, int threads, Body&& body) {
    const std::vector<std::size_t> starts = query_blocks(indptr);
    parallel_for(starts.size() - 1, threads, [&](std::size_t b) {
        Scratch scratch;
        Breath breath;
        for (std::size_t q = starts[b]; q < starts[b + 1]; ++q) {
            body(scratch, q);
            breath.after(64 * static_cast<std::size_t>(indptr[q + 1] - indptr[q]));
        }
    });
}

}  // namespace exactrank
