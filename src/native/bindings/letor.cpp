// LETOR text, read and written.
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "bindings/arrays.hpp"
#include "data/letor.hpp"
#include "data/letor_text.hpp"

namespace exactrank {

namespace {

nb::ndarray<nb::numpy, float, nb::ndim<2>> matrix(GrowingMatrix::Block block, std::size_t rows, std::size_t width) {
    float* cells = block.release();
    const nb::capsule owner(cells, [](void* p) noexcept { std::free(p); });
    return {cells, {rows, width}, owner};
}

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

nb::tuple spans(const std::vector<Span>& given, std::size_t rows) {
    std::vector<std::int64_t> start(rows), stop(rows);
    for (std::size_t i = 0; i < given.size(); ++i) start[i] = given[i].start, stop[i] = given[i].stop;
    return nb::make_tuple(array(std::move(start)), array(std::move(stop)));
}

nb::tuple taken(LetorParser& parser) {
    LetorRows rows = parser.take();
    nb::object comments = nb::none(), comment = nb::none(), docid = nb::none();
    if (!rows.comment.empty()) {
        comments = nb::cast(array(std::vector<std::uint8_t>(rows.comments.begin(), rows.comments.end())));
        comment = spans(rows.comment, rows.rows);
        docid = spans(rows.docid, rows.rows);
    }
    return nb::make_tuple(matrix(std::move(rows.x), rows.rows, rows.width), array(std::move(rows.y)), array(std::move(rows.query)), comments, comment, docid);
}

std::vector<std::string> strings(const nb::sequence& items) {
    std::vector<std::string> out;
    for (nb::handle item : items) {
        require(nb::isinstance<nb::bytes>(item), "query_names must hold bytes");
        const auto bytes = nb::borrow<nb::bytes>(item);
        out.emplace_back(bytes.c_str(), bytes.size());
    }
    return out;
}

// ::read, but a pipe that stays empty does not keep Ctrl-C waiting.
ssize_t read_when_ready(int descriptor, std::uint8_t* to, std::size_t room) {
    pollfd watched{descriptor, POLLIN, 0};
    for (;; breathe()) {
        const int ready = ::poll(&watched, 1, static_cast<int>(between_looks.count()));
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t size = ::read(descriptor, to, room);
        if (size >= 0 || errno != EINTR) return size;
    }
}

nb::bytes written_rows(InMatrix<float> x, std::optional<In<double>> offset, In<double> y, In<std::int64_t> query, const nb::sequence& query_names,
                       std::optional<In<std::uint8_t>> comments, std::optional<In<std::int64_t>> start, std::optional<In<std::int64_t>> stop, int threads) {
    const std::vector<std::string> names = strings(query_names);
    const std::size_t rows = x.shape(0);
    if (offset) require_length("offset", offset->size(), x.shape(1));
    require_length("y", y.size(), rows);
    require_length("query", query.size(), rows);
    for (std::size_t i = 0; i < rows; ++i) require_below("query", query.data()[i], names.size());
    require(start.has_value() == comments.has_value() && stop.has_value() == comments.has_value(), "comments, start and stop belong together");
    if (comments) {
        require_length("start", start->size(), rows);
        require_length("stop", stop->size(), rows);
        for (std::size_t i = 0; i < rows; ++i)
            require(0 <= (*start)(i) && (*start)(i) <= (*stop)(i) && static_cast<std::size_t>((*stop)(i)) <= comments->size(),
                    "a comment lies outside the text");
    }
    const LetorTable table{x.data(),
                           offset ? offset->data() : nullptr,
                           y.data(),
                           query.data(),
                           rows,
                           x.shape(1),
                           names,
                           comments ? reinterpret_cast<const char*>(comments->data()) : nullptr,
                           start ? start->data() : nullptr,
                           stop ? stop->data() : nullptr};
    std::string text;
    {
        nb::gil_scoped_release release;
        text = letor_text(table, threads);
    }
    return to_bytes(text);
}

}  // namespace

void bind_letor(nb::module_& m) {
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const ParseError& e) {
            const nb::object arguments = nb::make_tuple(e.line, to_bytes(e.message));
            PyErr_SetObject(PyExc_ValueError, arguments.ptr());
        }
    });
    nb::class_<LetorParser>(m, "LetorParser")
        .def(
            "__init__",
            [](LetorParser* self, bool missing, bool queries, std::int64_t features, std::int64_t first_feature, std::int64_t expected_bytes, int threads,
               const std::vector<std::int64_t>& exact) {
                for (const std::int64_t column : exact) require(column >= 0 && column < features && first_feature >= 0, "an exact column is out of range");
                new (self) LetorParser(LetorOptions{missing, queries, features, first_feature, expected_bytes, threads, exact});
            },
            "missing"_a, "queries"_a, "features"_a, "first_feature"_a, "expected_bytes"_a, "threads"_a, "exact"_a = std::vector<std::int64_t>{})
        .def(
            "feed",
            [](LetorParser& self, In<std::uint8_t> block) {
                nb::gil_scoped_release release;
                self.feed({reinterpret_cast<const char*>(block.data()), block.size()}, [] {});
            },
            "block"_a)
        .def(
            "feed_while_reading",
            [](LetorParser& self, In<std::uint8_t> block, int descriptor, nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> next) {
                ssize_t size = 0;
                int failure = 0;
                {
                    nb::gil_scoped_release release;
                    self.feed({reinterpret_cast<const char*>(block.data()), block.size()}, [&] {
                        size = read_when_ready(descriptor, next.data(), next.size());
                        failure = errno;
                    });
                }
                if (size < 0) {
                    errno = failure;
                    PyErr_SetFromErrno(PyExc_OSError);
                    throw nb::python_error();
                }
                return size;
            },
            "block"_a, "descriptor"_a, "next"_a)
        .def("finish", &LetorParser::finish, nb::call_guard<nb::gil_scoped_release>())
        .def("take", &taken)
        .def("take_exact", [](LetorParser& self) { return array(self.take_exact()); })
        .def("query_names",
             [](const LetorParser& self) {
                 nb::list names;
                 for (const std::string& name : self.query_names()) names.append(to_bytes(name));
                 return names;
             })
        .def_prop_ro("first_feature", &LetorParser::first_feature);
    m.def("letor_text", &written_rows, "x"_a, "offset"_a.none(), "y"_a, "query"_a, "query_names"_a, "comments"_a.none(), "start"_a.none(), "stop"_a.none(),
          "threads"_a);
}

}  // namespace exactrank
