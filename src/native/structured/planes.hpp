// The least value of a quadratic term plus a sum of maxima of planes, by its dual.
//
//     min over theta   strength/2 |theta - center|^2 + sum_p max_{i in p} (b_i + v_i . theta)                    (1)
//     max over alpha   sum_i alpha_i (b_i + v_i . center) - |sum_i alpha_i v_i|^2 / (2 strength)                 (2)
//     theta = center - sum_i alpha_i v_i / strength,    alpha_i >= 0, summing to 1 within each part p            (3)
//
// With h_i = b_i + v_i . theta the distance of (1) from (2) is the sum over parts of
//
//     gap_p = max_{i in p} h_i - sum_{i in p} alpha_i h_i                                                        (4)
//
// Parts are visited in turn, each with all its planes; then some times with those that have weight alone, and if that is slow all
// weights move together (face.hpp). One part makes (1) the program of bundle methods, a part a query that of cutting planes.
#pragma once

#include "structured/face.hpp"

namespace exactrank {

class Planes {
public:
    static std::size_t width_of(std::size_t dimension) { return (dimension + 7) / 8 * 8; }
    // A copy of a plane's normal, filled up with zeros.
    static std::shared_ptr<double[]> padded_normal(const double* normal, std::size_t dimension) {
        std::shared_ptr<double[]> kept(new double[width_of(dimension)]());
        std::copy(normal, normal + dimension, kept.get());
        return kept;
    }

    Planes(std::size_t parts, double strength, const double* center, std::size_t dimension)
        : dimension_(dimension), width_(width_of(dimension)), parts_(parts) {
        pose(strength, center);
    }

    // As another left off: with its theta, which has rounded on the way, and of each part how many planes were ordered first.
    Planes(double strength, const double* center, const double* theta, std::size_t dimension, std::vector<Part>&& parts)
        : strength_(strength), dimension_(dimension), width_(width_of(dimension)), parts_(std::move(parts)), center_(padded(center)), theta_(padded(theta)) {}

    // The same planes and alphas in a problem (1) of another strength and center.
    void pose(double strength, const double* center) {
        strength_ = strength;
        center_ = padded(center);
        refresh();
    }

    // Whether the part did not hold the plane yet; one of equal normal is the same, with the higher offset.
    bool add(std::size_t p, double offset, const double* normal) {
        Part& part = parts_[p];
        const std::size_t n = part.size();
        for (std::size_t i = 0; i < n; ++i) {
            if (!std::equal(normal, normal + dimension_, part.normal[i].get())) continue;
            part.offset[i] = std::max(part.offset[i], offset);
            return false;
        }
        auto kept = padded_normal(normal, dimension_);
        if (n == 0) add_share(-1.0 / strength_, kept.get(), width_, theta_.data());
        part.add(offset, std::move(kept), width_);
        return true;
    }

    // Moves the weight within part p until its gap is a tenth of what it was or `enough`; the gap that it had.
    double improve(std::size_t p, double enough) {
        const double gap = improve(parts_[p], parts_[p].size(), enough);
        parts_[p].order();
        return gap;
    }

    // Visits parts up to `sweeps` times, until the gap is at most `tolerance`; the gap reached, NaN where numbers are not finite.
    double solve(double tolerance, std::int64_t sweeps) {
        refresh();
        const double enough = 0.5 * tolerance / static_cast<double>(parts_.size());
        double left = std::numeric_limits<double>::infinity();
        for (std::int64_t done = 0; done < sweeps;) {
            left = 0;  // each part's gap when it was visited: an estimate, since the others moved theta
            for (std::size_t p = 0; p < parts_.size(); ++p) left += improve(p, enough);
            ++done;
            if (left <= tolerance) left = gap();
            if (!(left > tolerance)) break;
            const std::int64_t worked = work(enough, 0.1 * left, std::min(sweeps - done, most_work));
            done += worked;
            if (worked == most_work) done += Face(parts_, strength_, width_, theta_.data()).climb(std::min(sweeps - done, most_climb));
            refresh();
        }
        return left > tolerance ? gap() : left;
    }

    // The sum of maxima at theta.
    double height() {
        double sum = 0;
        for (const Part& part : parts_) {
            heights(part, part.size());
            sum += part.size() == 0 ? -std::numeric_limits<double>::infinity() : *std::max_element(h_.begin(), h_.end());
        }
        return sum;
    }

    // (2), from the alphas themselves; -inf while a part has no plane.
    double dual() const {
        std::vector<double> sum(width_);
        double value = 0;
        for (const Part& part : parts_) {
            if (part.size() == 0) return -std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < part.size(); ++i) {
                if (part.alpha[i] == 0) continue;
                value += part.alpha[i] * part.offset[i];
                add_share(part.alpha[i], part.normal[i].get(), width_, sum.data());
            }
        }
        return value + product(sum.data(), center_.data(), width_) - product(sum.data(), sum.data(), width_) / (2 * strength_);
    }

    // All weight on one plane of each part.
    void restart() {
        for (Part& part : parts_)
            for (std::size_t i = 0; i < part.size(); ++i) part.alpha[i] = i == 0 ? 1.0 : 0.0;
        refresh();
    }

    // Forgets the planes whose alpha was 0 at the last `idle` calls.
    void drop(std::int32_t idle) {
        for (Part& part : parts_)
            for (std::size_t i = part.size(); i-- > 0;) {
                part.idle[i] = part.alpha[i] > 0 ? 0 : part.idle[i] + 1;
                if (part.idle[i] >= idle) part.remove(i);
            }
    }

    const std::vector<Part>& parts() const { return parts_; }
    double strength() const { return strength_; }
    const double* center() const { return center_.data(); }
    const double* theta() const { return theta_.data(); }
    std::size_t dimension() const { return dimension_; }

private:
    std::vector<double> padded(const double* values) const {
        std::vector<double> out(width_);
        std::copy(values, values + dimension_, out.begin());
        return out;
    }

    // (3); the sums of alphas are put right too, against drift.
    void refresh() {
        theta_ = center_;
        for (Part& part : parts_) {
            double sum = 0;
            for (const double alpha : part.alpha) sum += alpha;
            for (std::size_t i = 0; i < part.size(); ++i) {
                part.alpha[i] /= sum;
                if (part.alpha[i] != 0) add_share(-part.alpha[i] / strength_, part.normal[i].get(), width_, theta_.data());
            }
        }
    }

    // Visits parts up to `sweeps` times with the planes that have weight alone, until their gap is `goal`; how often that was.
    std::int64_t work(double enough, double goal, std::int64_t sweeps) {
        double left = std::numeric_limits<double>::infinity();
        std::int64_t done = 0;
        for (; done < sweeps && left > goal; ++done) {
            left = 0;
            for (Part& part : parts_)
                if (part.working > 1) left += improve(part, part.working, enough);
        }
        return done;
    }

    double improve(Part& part, std::size_t size, double enough) {
        breath_.after(16 + size * width_ / 4);
        const double gap = heights(part, size);
        if (!(gap > enough)) return gap;
        before_ = part.alpha;
        move_weight(part.products, size, strength_, std::max(enough, 0.1 * gap), 50 + 20 * size, part.alpha.data(), h_.data(), breath_);
        for (std::size_t i = 0; i < size; ++i)
            if (part.alpha[i] != before_[i]) add_share((before_[i] - part.alpha[i]) / strength_, part.normal[i].get(), width_, theta_.data());
        breath_.settle();  // theta belongs to the alphas again
        return gap;
    }

    double gap() {
        double sum = 0;
        for (const Part& part : parts_) sum += heights(part, part.size());
        return sum;
    }

    // Fills h for the first planes of a part; their gap (4).
    double heights(const Part& part, std::size_t size) {
        h_.resize(size);
        double highest = -std::numeric_limits<double>::infinity(), mean = 0;
        for (std::size_t i = 0; i < size; ++i) {
            h_[i] = part.offset[i] + product(part.normal[i].get(), theta_.data(), width_);
            mean += part.alpha[i] * h_[i];
            highest = h_[i] > highest ? h_[i] : highest;
        }
        return size == 0 ? 0.0 : std::max(highest - mean, 0.0);
    }

    static constexpr std::int64_t most_work = 20, most_climb = 50;  // for one visit with all planes
    double strength_ = 1;
    std::size_t dimension_, width_;
    std::vector<Part> parts_;
    std::vector<double> center_, theta_;  // filled up with zeros to `width_`
    std::vector<double> h_, before_;      // of the part that is being visited
    QuietBreath breath_;
};

}  // namespace exactrank
