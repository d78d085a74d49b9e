// Long work that can be given up: Ctrl-C, and the failure of another thread, end it within a fraction of a second.
//
// A loop that may last calls breathe() now and then, or counts what it does by a Breath, which costs an addition. In the thread that
// called the kernel, breathe() asks every 50 ms, through `look_at_signals`, whether a signal's handler has raised; in all threads of a
// call it ends the work once the call is given up (threads.hpp). Kernels know nothing of Python: bindings.cpp installs the question.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <utility>

namespace exactrank {

// Thrown out of work whose call is given up; the call itself ends with the reason for it.
struct GivenUp : std::runtime_error {
    GivenUp() : std::runtime_error("the call was given up") {}
};

// Throws what a signal's handler raised. Set once, when the module is loaded.
inline void (*look_at_signals)() = [] {};

constexpr std::chrono::milliseconds between_looks{50};

// What a thread knows of the call that it works for. A place of its own in every thread from its start (initial-exec) needs no memory
// later, where there may be none.
struct Call {
    const std::atomic<bool>* given_up = nullptr;  // null: it works alone
    bool asks = true;                             // about signals: the thread that called
    std::chrono::steady_clock::time_point next_look{};
};
#ifdef __linux__
[[gnu::tls_model("initial-exec")]]
#endif
inline thread_local constinit Call current_call;

// Throws if the work is to end.
inline void breathe() {
    Call& call = current_call;
    if (call.given_up && call.given_up->load(std::memory_order_relaxed)) throw GivenUp();
    if (!call.asks) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < call.next_look) return;
    call.next_look = now + between_looks;
    look_at_signals();
}

// Counts the work of a loop, in units of a few nanoseconds, and breathes when it has become a millisecond or so.
class Breath {
public:
    void after(std::size_t work) {
        done_ += work;
        if (done_ < worth_a_breath) [[likely]]
            return;
        done_ = 0;
        breathe();
    }

private:
    static constexpr std::size_t worth_a_breath = std::size_t{1} << 18;
    std::size_t done_ = 0;
};

// The same within functions that must not throw: they end when `ends_after` says so, and their caller calls `settle`.
class QuietBreath {
public:
    bool ends_after(std::size_t work) noexcept {
        try {
            breath_.after(work);
        } catch (...) {
            reason_ = std::current_exception();
        }
        return reason_ != nullptr;
    }
    void after(std::size_t work) {
        if (ends_after(work)) settle();
    }
    void settle() {
        if (reason_) std::rethrow_exception(std::exchange(reason_, nullptr));
    }

private:
    Breath breath_;
    std::exception_ptr reason_;
};

// A comparison that breathes, for sorts that may last. The order, also of equals, is that of the plain one.
template <class Less>
auto breathing(Less less) {
    return [less, breath = Breath()](const auto& a, const auto& b) mutable {
        breath.after(4);
        return less(a, b);
    };
}

// std::sort, which breathes where it may last.
template <class Iterator, class Less>
void sort_long(Iterator first, Iterator last, Less less) {
    constexpr std::ptrdiff_t few = 1 << 16;
    last - first < few ? std::sort(first, last, less) : std::sort(first, last, breathing(less));
}

}  // namespace exactrank
