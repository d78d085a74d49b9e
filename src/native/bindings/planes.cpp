// Sums of maxima of planes with a quadratic term: what cutting planes, bundles and subgradients solve.
#include "structured/planes.hpp"

#include "bindings/arrays.hpp"

namespace exactrank {

namespace {

void require_center(double strength, const In<double>& center, std::size_t dimension) {
    require(strength > 0, "the strength must be above 0");
    require_length("center", center.size(), dimension);
}

std::size_t add_planes(Planes& self, In<std::int64_t> parts, In<double> offsets, InMatrix<double> normals) {
    require_length("offsets", offsets.size(), parts.size());
    require_length("normals", normals.shape(0), parts.size());
    require(normals.shape(1) == self.dimension(), "the normals have another dimension");
    for (std::size_t i = 0; i < parts.size(); ++i) require_below("parts", parts(i), self.parts().size());
    nb::gil_scoped_release release;
    std::size_t added = 0;
    Breath breath;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto part = static_cast<std::size_t>(parts(i));
        added += self.add(part, offsets(i), normals.data() + i * self.dimension());
        breath.after(self.parts()[part].size() * self.dimension() / 4 + 16);
    }
    return added;
}

void improve_parts(Planes& self, In<std::int64_t> parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) require_below("parts", parts(i), self.parts().size());
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < parts.size(); ++i) self.improve(static_cast<std::size_t>(parts(i)), 0.0);
}

// All that there is to go on from: of every plane the part, the offset, the normal, alpha and how long it has been idle; of every part how
// many planes come first that had weight; strength, center and theta.
nb::tuple held_planes(const Planes& self) {
    std::vector<std::int64_t> working, part, idle;
    std::vector<double> offset, alpha;
    std::vector<const double*> normal;
    for (const Part& held : self.parts()) {
        part.insert(part.end(), held.size(), static_cast<std::int64_t>(working.size()));
        working.push_back(static_cast<std::int64_t>(held.working));
        offset.insert(offset.end(), held.offset.begin(), held.offset.end());
        alpha.insert(alpha.end(), held.alpha.begin(), held.alpha.end());
        idle.insert(idle.end(), held.idle.begin(), held.idle.end());
        for (const auto& cells : held.normal) normal.push_back(cells.get());
    }
    const std::size_t d = self.dimension();
    auto normals = empty<double>(normal.size(), d);
    for (std::size_t i = 0; i < normal.size(); ++i) std::copy(normal[i], normal[i] + d, normals.data() + i * d);
    auto vector = [d](const double* values) { return array(std::vector<double>(values, values + d)); };
    return nb::make_tuple(array(std::move(part)), array(std::move(offset)), normals, array(std::move(alpha)), array(std::move(idle)), array(std::move(working)),
                          self.strength(), vector(self.center()), vector(self.theta()));
}

// The planes that `held_planes` told of, to the bit.
Planes from_held(In<std::int64_t> parts, In<double> offsets, InMatrix<double> normals, In<double> alphas, In<std::int64_t> idle, In<std::int64_t> working,
                 double strength, In<double> center, In<double> theta) {
    const std::size_t d = center.size(), count = parts.size();
    require_center(strength, center, d);
    require_length("theta", theta.size(), d);
    require_length("offsets", offsets.size(), count);
    require_length("normals", normals.shape(0), count);
    require(normals.shape(1) == d, "the normals have another dimension");
    require_length("alphas", alphas.size(), count);
    require_length("idle", idle.size(), count);
    std::vector<Part> made(working.size());
    for (std::size_t i = 0; i < count; ++i) {
        require_below("parts", parts(i), made.size());
        require_below("idle", idle(i), std::numeric_limits<std::int32_t>::max());
        require(alphas(i) >= 0, "alphas must be at least 0");
        Part& part = made[static_cast<std::size_t>(parts(i))];
        part.add(offsets(i), Planes::padded_normal(normals.data() + i * d, d), Planes::width_of(d));
        part.alpha.back() = alphas(i), part.idle.back() = static_cast<std::int32_t>(idle(i));
    }
    for (std::size_t p = 0; p < made.size(); ++p) {
        require_below("working", working(p), made[p].size() + 1);
        made[p].working = static_cast<std::size_t>(working(p));
    }
    return Planes(strength, center.data(), theta.data(), d, std::move(made));
}

}  // namespace

void bind_planes(nb::module_& m) {
    nb::class_<Planes>(m, "Planes")
        .def(
            "__init__",
            [](Planes* self, std::size_t parts, double strength, In<double> center) {
                require_center(strength, center, center.size());
                new (self) Planes(parts, strength, center.data(), center.size());
            },
            "parts"_a, "strength"_a, "center"_a)
        .def("copy", [](const Planes& self) { return Planes(self); })
        .def(
            "pose",
            [](Planes& self, double strength, In<double> center) {
                require_center(strength, center, self.dimension());
                self.pose(strength, center.data());
            },
            "strength"_a, "center"_a)
        .def("add", &add_planes, "parts"_a, "offsets"_a, "normals"_a)
        .def("improve", &improve_parts, "parts"_a)
        .def("solve", &Planes::solve, "tolerance"_a, "sweeps"_a, nb::call_guard<nb::gil_scoped_release>())
        .def("restart", &Planes::restart)
        .def(
            "drop",
            [](Planes& self, std::int32_t idle) {
                require(idle > 0, "planes cannot be dropped before they were idle once");
                self.drop(idle);
            },
            "idle"_a)
        .def("height", &Planes::height)
        .def("dual", &Planes::dual)
        .def("held", &held_planes)
        .def_static("from_held", &from_held, "parts"_a, "offsets"_a, "normals"_a, "alphas"_a, "idle"_a, "working"_a, "strength"_a, "center"_a, "theta"_a)
        .def("theta", [](const Planes& self) { return array(std::vector<double>(self.theta(), self.theta() + self.dimension())); })
        .def_prop_ro("count", [](const Planes& self) {
            std::size_t count = 0;
            for (const Part& part : self.parts()) count += part.size();
            return count;
        });
}

}  // namespace exactrank
