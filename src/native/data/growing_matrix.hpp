// A float32 matrix that grows by rows and, seldom, by columns, without ever holding two copies of itself.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "support/interrupt.hpp"

namespace exactrank {

class GrowingMatrix {
public:
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };
    using Block = std::unique_ptr<float[], Free>;

    std::size_t stride() const { return stride_; }
    float* row(std::size_t i) { return data_.get() + i * stride_; }

    // About how many rows there will be in all; only what is written takes memory.
    void expect(std::size_t rows) { expected_rows_ = rows; }

    // Room for `rows` rows; large blocks are remapped by the C library, not copied.
    void reserve(std::size_t rows) {
        if (stride_ > 0 && rows > most_cells / stride_) throw std::bad_alloc();
        if (rows * stride_ <= capacity_) return;
        if (expected_rows_ > rows && expected_rows_ <= most_cells / stride_ && resize_storage(expected_rows_ * stride_)) return prefer_huge_pages();
        if (!resize_storage(std::max(rows * stride_, capacity_ + capacity_ / 2))) throw std::bad_alloc();
    }
    // Widens the first `rows` rows to `stride`, moving their cells right by `shift`; the new cells are zero.
    void widen(std::size_t rows, std::size_t stride, std::size_t shift) {
        const std::size_t old = stride_;
        stride_ = stride;
        reserve(rows);
        Breath breath;
        for (std::size_t i = rows; i-- > 0;) {
            breath.after(stride);
            float* to = data_.get() + i * stride;
            std::memmove(to + shift, data_.get() + i * old, old * sizeof(float));
            std::fill(to, to + shift, 0.0f);
            std::fill(to + shift + old, to + stride, 0.0f);
        }
    }
    // Gives the storage away as rows x width, keeping the stride for what follows.
    Block take(std::size_t rows, std::size_t width) {
        Breath breath;
        if (width < stride_)
            for (std::size_t i = 1; i < rows; ++i) {
                breath.after(width);
                std::memmove(data_.get() + i * width, row(i), width * sizeof(float));
            }
        if (!resize_storage(std::max<std::size_t>(rows * width, 1))) throw std::bad_alloc();
        capacity_ = expected_rows_ = 0;
        return std::move(data_);
    }

private:
    static constexpr std::size_t most_cells = std::size_t{1} << 60;
    bool resize_storage(std::size_t cells) {
        auto* moved = static_cast<float*>(std::realloc(data_.get(), cells * sizeof(float)));
        if (!moved) return false;
        static_cast<void>(data_.release());
        data_.reset(moved);
        capacity_ = cells;
        return true;
    }
    // Faults on small pages would take a tenth of the time of parsing; but huge ones are slow to remap, so they are asked for
    // only where the size is known.
    void prefer_huge_pages() {
#ifdef MADV_HUGEPAGE
        const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
        const auto start = reinterpret_cast<std::uintptr_t>(data_.get());
        const auto first = (start + page - 1) / page * page, last = (start + capacity_ * sizeof(float)) / page * page;
        if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);  // a hint: failure is no harm
#endif
    }
    Block data_;
    std::size_t stride_ = 0, capacity_ = 0, expected_rows_ = 0;
};

}  // namespace exactrank
