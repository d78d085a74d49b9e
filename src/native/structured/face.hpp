// The weights that are not 0, which climb the dual together by conjugate gradients.
//
// Where many parts depend on each other, moving the weight of one after the other is slow. The dual's slope by alpha_i is
// h_i = b_i + v_i . theta; the weights of a part keep their sum, so it counts less its mean over the part's planes. A step ends
// where a weight falls to 0; without that plane they start anew (as More & Toraldo 1991 do within bounds).
#pragma once

#include <numeric>

#include "structured/part.hpp"

namespace exactrank {

class Face {
public:
    Face(std::vector<Part>& parts, double strength, std::size_t width, double* theta) : parts_(parts), strength_(strength), width_(width), theta_(theta) {}

    // Climbs by at most `steps` steps, until the slope is a thousandth of what it was; how many they were.
    std::int64_t climb(std::int64_t steps) {
        std::int64_t done = 0;
        while (done < steps && collect() && blocked(done, steps)) {}
        return done;
    }

private:
    // The planes that share the weight of their part, and the slope there; whether there are any.
    bool collect() {
        free_.clear(), first_.clear(), slope_.clear();
        for (Part& part : parts_) {
            const auto weighty = std::count_if(part.alpha.begin(), part.alpha.end(), [](double alpha) { return alpha > 0; });
            if (weighty < 2) continue;
            first_.push_back(free_.size());
            for (std::size_t i = 0; i < part.size(); ++i) {
                if (!(part.alpha[i] > 0)) continue;
                free_.push_back({&part.alpha[i], part.normal[i].get()});
                slope_.push_back(part.offset[i] + product(part.normal[i].get(), theta_, width_));
            }
        }
        first_.push_back(free_.size());
        rounding_ = 1e-28 * squared(slope_);
        center(slope_);
        return !free_.empty();
    }

    // Conjugate gradients, until they are done or a weight falls to 0; whether that was so.
    bool blocked(std::int64_t& done, std::int64_t steps) {
        direction_ = slope_;
        double square = squared(slope_);
        for (const double enough = std::max(1e-6 * square, rounding_); done < steps && square > enough; ++done) {
            breath_.after(free_.size() * width_ / 4);
            sum_.assign(width_, 0.0);
            double room = std::numeric_limits<double>::infinity();
            for (std::size_t k = 0; k < free_.size(); ++k) {
                add_share(direction_[k], free_[k].normal, width_, sum_.data());
                if (direction_[k] < 0) room = std::min(room, -*free_[k].alpha / direction_[k]);
            }
            const double step = std::min(room, square * strength_ / product(sum_.data(), sum_.data(), width_));
            if (move(step)) return ++done, true;
            bend_.resize(free_.size());
            for (std::size_t k = 0; k < free_.size(); ++k) bend_[k] = product(free_[k].normal, sum_.data(), width_);
            center(bend_);
            for (std::size_t k = 0; k < free_.size(); ++k) slope_[k] -= step / strength_ * bend_[k];
            const double before = square;
            square = squared(slope_);
            for (std::size_t k = 0; k < free_.size(); ++k) direction_[k] = slope_[k] + square / before * direction_[k];
            center(direction_);  // so that sums stay to the last digit
        }
        return false;
    }

    // Whether a weight came to 0.
    bool move(double step) {
        bool any = false;
        for (std::size_t k = 0; k < free_.size(); ++k) {
            double& alpha = *free_[k].alpha;
            alpha = std::max(alpha + step * direction_[k], 0.0);
            any |= alpha == 0;
        }
        add_share(-step / strength_, sum_.data(), width_, theta_);
        return any;
    }

    void center(std::vector<double>& values) const {
        for (std::size_t p = 0; p + 1 < first_.size(); ++p) {
            double mean = 0;
            for (std::size_t k = first_[p]; k < first_[p + 1]; ++k) mean += values[k];
            mean /= static_cast<double>(first_[p + 1] - first_[p]);
            for (std::size_t k = first_[p]; k < first_[p + 1]; ++k) values[k] -= mean;
        }
    }

    static double squared(const std::vector<double>& values) { return std::inner_product(values.begin(), values.end(), values.begin(), 0.0); }

    struct Free {
        double* alpha;
        const double* normal;
    };
    std::vector<Part>& parts_;
    double strength_;
    std::size_t width_;
    double* theta_;
    std::vector<Free> free_;
    std::vector<std::size_t> first_;  // where each part begins among them
    std::vector<double> slope_, direction_, bend_, sum_;
    Breath breath_;
    double rounding_ = 0;  // a slope whose square is smaller is none
};

}  // namespace exactrank
