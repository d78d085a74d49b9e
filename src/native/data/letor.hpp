// LETOR / SVMlight ranking text, `2 qid:10 1:0.5 7:1e-3 # docid = GX1`, parsed block by block on several threads.
//
// A block is cut into pieces at line ends; a first look counts each piece's rows, so that every thread knows where its
// rows go and writes them straight into the one matrix. A piece that meets a feature the matrix has no column for stops
// before that line; the matrix is widened once for all pieces and they go on. Memory is the matrix plus one block.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/growing_matrix.hpp"
#include "data/number.hpp"
#include "support/threads.hpp"

namespace exactrank {

struct LetorOptions {
    bool missing = false;             // accept nan, inf and NULL as missing values
    bool queries = true;              // each row names its query
    std::int64_t features = -1;       // the number of columns; -1: as many as the text has
    std::int64_t first_feature = -1;  // the id of the first column, 0 or 1; -1: 0 if that id occurs, else 1
    std::int64_t expected_bytes = 0;  // the length of the text, where it is known
    int threads = 1;
    std::vector<std::int64_t> exact = {};  // columns whose doubles are kept too; their number and the first id must be given then
};

struct ParseError : std::runtime_error {
    ParseError(std::int64_t line, const std::string& message) : std::runtime_error(message), line(line), message(message) {}
    std::int64_t line;
    std::string message;  // may hold any byte, which what() may not
};

struct Span {
    std::int64_t start = 0, stop = 0;
};

// What has been parsed since the last take().
struct LetorRows {
    GrowingMatrix::Block x;
    std::size_t rows = 0, width = 0;
    std::vector<double> y;
    std::vector<std::int64_t> query;  // number of the row's query in order of first appearance
    std::string comments;             // the text after each '#', one after another
    std::vector<Span> comment, docid;
};

class LetorParser {
public:
    explicit LetorParser(const LetorOptions& options) : options_(options), base_(options.first_feature == 0 ? 0 : 1) {
        if (options.features >= 0) {
            width_ = static_cast<std::size_t>(options.features);
            matrix_.widen(0, width_, 0);
        }
        if (options.exact.empty()) return;
        exact_place_.assign(width_, -1);
        for (std::size_t k = 0; k < options.exact.size(); ++k) exact_place_.at(static_cast<std::size_t>(options.exact[k])) = static_cast<std::int64_t>(k);
    }

    // Parses the whole lines of `text`, and keeps the rest for the next call; `beside` runs once meanwhile.
    template <class Beside>
    void feed(std::string_view text, Beside&& beside) {
        bytes_ += text.size();
        const std::size_t first_end = text.find('\n');
        if (first_end == text.npos) {
            carry_ += text;
            return beside();
        }
        if (!carry_.empty()) {
            carry_ += text.substr(0, first_end + 1);
            text.remove_prefix(first_end + 1);
            parse(std::exchange(carry_, {}), [] {});
        }
        const std::size_t whole = text.rfind('\n') + 1;  // npos + 1 == 0
        parse(text.substr(0, whole), beside);
        carry_ = text.substr(whole);
    }
    // Parses what is left after the last line end.
    void finish() {
        if (!carry_.empty()) parse(std::exchange(carry_, {}) + '\n', [] {});
    }
    LetorRows take() {
        out_.rows = rows_;
        out_.width = width_;
        out_.x = matrix_.take(rows_, width_);
        rows_ = 0;
        return std::exchange(out_, {});
    }

    // Rows x the exact columns, of what the next take() gives.
    std::vector<double> take_exact() { return std::exchange(exact_, {}); }

    const std::vector<std::string>& query_names() const { return query_names_; }
    std::int64_t first_feature() const { return base_; }

private:
    enum class Stop { end, wider, zero_based, error };
    struct Piece {
        const char *at, *end;
        std::int64_t line = 0, lines = 0;
        std::size_t first_row = 0, row = 0, rows = 0, width = 0;
        std::vector<std::pair<std::size_t, std::string_view>> queries;  // a row whose query differs from that before it
        std::string comments;
        std::vector<Span> comment, docid;
        Stop stop = Stop::end;
        std::uint64_t feature = 0;
        std::string error;
    };

    static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
    static bool ends_token(char c) { return blank(c) || c == '\n' || c == '#'; }
    static const char* skip_blanks(const char* p) {
        while (blank(*p)) ++p;
        return p;
    }
    static std::string token(const char* p) {
        const char* end = p;
        while (*end != '\n' && !blank(*end) && end - p < 40) ++end;
        return std::string(p, end);
    }
    static bool fail(Piece& piece, const std::string& what) {
        piece.stop = Stop::error;
        piece.error = what;
        return false;
    }

    template <class Beside>
    void parse(std::string_view text, Beside&& beside) {
        constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
        if (lines_ == 0 && text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
        std::vector<Piece> pieces = cut(text);
        for (Piece& piece : pieces) count_lines(piece);
        std::size_t row = rows_;
        for (Piece& piece : pieces) {
            piece.first_row = piece.row = row;
            piece.line = lines_ + 1;
            row += piece.rows;
            lines_ += piece.lines;
        }
        refuse_emptiness(matrix_.stride(), row);
        out_.y.resize(row);
        exact_.resize(row * options_.exact.size());
        if (const auto expected = static_cast<double>(options_.expected_bytes); expected > static_cast<double>(bytes_))
            matrix_.expect(static_cast<std::size_t>(std::min(0x1p60, 1.01 * static_cast<double>(row) * expected / static_cast<double>(bytes_))));
        matrix_.reserve(row);
        parallel_for(pieces.size() + 1, options_.threads, [&](std::size_t i) { i == 0 ? beside() : parse_piece(pieces[i - 1]); });
        while (settle(pieces, row)) parallel_for(pieces.size(), options_.threads, [&](std::size_t i) { parse_piece(pieces[i]); });
        rows_ = row;
        for (Piece& piece : pieces) gather(piece);
    }

    std::vector<Piece> cut(std::string_view text) const {
        constexpr std::size_t least = 32768;
        const std::size_t count =
            options_.threads == 1 ? 1 : std::clamp<std::size_t>(text.size() / least, 1, 32 * static_cast<std::size_t>(std::max(options_.threads, 1)));
        std::vector<Piece> pieces;
        for (std::size_t i = 1; !text.empty(); ++i) {
            const std::size_t near = i < count ? std::min(text.size() - 1, text.size() / (count - i + 1)) : text.size() - 1;
            const std::size_t end = text.find('\n', near) + 1;
            Piece piece;
            piece.at = text.data();
            piece.end = text.data() + end;
            pieces.push_back(std::move(piece));
            text.remove_prefix(end);
        }
        return pieces;
    }

    static void count_lines(Piece& piece) {
        for (const char* p = piece.at; p < piece.end; ++piece.lines) {
            const char* first = skip_blanks(p);
            piece.rows += *first != '\n' && *first != '#';
            p = static_cast<const char*>(std::memchr(first, '\n', piece.end - first)) + 1;
        }
    }

    void parse_piece(Piece& piece) {
        piece.stop = Stop::end;
        while (piece.at < piece.end) {
            const char* p = skip_blanks(piece.at);
            if (*p != '\n' && *p != '#') {
                if (!parse_row(piece, p)) return;
                ++piece.row;
            }
            piece.at = static_cast<const char*>(std::memchr(p, '\n', piece.end - p)) + 1;
            ++piece.line;
        }
    }

    // Reads one row at p and leaves p at its end of line; false if the piece has to stop before it.
    bool parse_row(Piece& piece, const char*& p) {
        double y;
        const char* end = read_number(p, y);
        if (!end || !ends_token(*end)) return fail(piece, "grade '" + token(p) + "' is not a finite number; expected e.g. '2 qid:7 1:0.5'");
        if (!options_.queries) {
            p = end;
            if (!parse_features(piece, p)) return false;
            return keep_row(piece, p, y, {});
        }
        const char* qid = skip_blanks(end);
        if (!std::string_view(qid, piece.end - qid).starts_with("qid:") || ends_token(qid[4]))
            return fail(piece, "no query id after the grade; expected e.g. '2 qid:7 1:0.5', found '" + token(qid) + "'");
        const char* qid_end = qid + 4;
        while (!ends_token(*qid_end)) ++qid_end;
        p = qid_end;
        if (!parse_features(piece, p)) return false;
        return keep_row(piece, p, y, std::string_view(qid + 4, qid_end - qid - 4));
    }
    bool keep_row(Piece& piece, const char* p, double y, std::string_view query) {
        if (piece.queries.empty() || piece.queries.back().second != query) piece.queries.emplace_back(piece.row, query);
        out_.y[piece.row] = y;
        if (*p == '#') keep_comment(piece, p + 1);
        return true;
    }

    bool parse_features(Piece& piece, const char*& p) {
        const std::size_t stride = matrix_.stride();
        float* const cells = matrix_.row(piece.row);
        double* const exact = exact_place_.empty() ? nullptr : exact_.data() + piece.row * options_.exact.size();
        std::size_t column = 0;  // the first not yet written
        for (p = skip_blanks(p); *p != '\n' && *p != '#'; p = skip_blanks(p)) {
            const char* start = p;
            std::uint64_t id = 0;
            while (digit(*p) < 10 && p - start < 19) id = 10 * id + digit(*p++);
            if (p == start || *p != ':') return fail(piece, "'" + token(start) + "' is not a feature; expected id:value with a whole id, e.g. 7:0.5");
            const std::size_t at = id - static_cast<std::uint64_t>(base_);
            if (at >= stride) [[unlikely]]
                return no_column(piece, start, id);
            if (at < column) [[unlikely]]
                return not_ascending(piece, start, id, at + 1 == column);
            std::fill(cells + column, cells + at, 0.0f);
            double value;
            const char* end = read_number(++p, value);
            if (!end || !ends_token(*end) || std::abs(value) > max_float) [[unlikely]] {
                end = missing_value(p);
                if (!end || !options_.missing) return bad_value(piece, start, end != nullptr);
                value = std::numeric_limits<double>::quiet_NaN();
            }
            cells[at] = static_cast<float>(value);
            if (exact && exact_place_[at] >= 0) exact[exact_place_[at]] = value;
            column = at + 1;
            p = end;
        }
        std::fill(cells + column, cells + stride, 0.0f);
        piece.width = std::max(piece.width, column);
        return true;
    }

    static constexpr double max_float = 3.4028235677973366e38;  // what still rounds to a finite float32

    // The end of nan, inf, infinity or null (any case, with a sign) at p, or null.
    static const char* missing_value(const char* p) {
        p += *p == '-' || *p == '+';
        for (const std::string_view word : {"nan", "infinity", "inf", "null"}) {
            std::size_t same = 0;
            while (same < word.size() && (p[same] | 0x20) == word[same]) ++same;
            if (same == word.size() && ends_token(p[same])) return p + same;
        }
        return nullptr;
    }

    bool no_column(Piece& piece, const char* start, std::uint64_t id) {
        if (id == 0 && options_.first_feature < 0) return stop(piece, Stop::zero_based, 0);
        if (id == 0) return fail(piece, "feature id 0 lies below first_feature=1 ('" + token(start) + "')");
        if (options_.features >= 0)
            return fail(piece, "feature id " + std::to_string(id) + " lies outside " + std::to_string(base_) + ".." + std::to_string(width_ + base_ - 1) +
                                   ", the ids asked for");
        // Ids ascend, so the last of the line tells how wide it is.
        std::uint64_t last = id;
        for (const char* p = start; *p != '\n' && *p != '#'; ++p)
            if (digit(*p) < 10 && blank(p[-1])) {
                std::uint64_t other = 0;
                const char* q = p;
                while (digit(*q) < 10 && q - p < 19) other = 10 * other + digit(*q++);
                if (*q == ':') last = std::max(last, other);
            }
        return stop(piece, Stop::wider, last);
    }
    static bool stop(Piece& piece, Stop why, std::uint64_t feature) {
        piece.stop = why;
        piece.feature = feature;
        return false;
    }
    static bool not_ascending(Piece& piece, const char* start, std::uint64_t id, bool repeated) {
        return fail(piece, "feature id " + std::to_string(id) + (repeated ? " is repeated" : " comes after a larger one") + " ('" + token(start) +
                               "'); ids must increase along the line");
    }
    static bool bad_value(Piece& piece, const char* start, bool is_missing) {
        if (is_missing) return fail(piece, "value of '" + token(start) + "' is missing or infinite; pass keep_missing=True (--missing keep) to keep it as NaN");
        return fail(piece, "value of '" + token(start) + "' is not a number that fits float32");
    }

    // Widens the matrix for the pieces that ask for it; true if they have to go on. Raises the first error of all.
    bool settle(std::vector<Piece>& pieces, std::size_t rows) {
        const Piece* wider = nullptr;
        bool zero_based = false;
        for (const Piece& piece : pieces) {
            if (piece.stop == Stop::error && !wider && !zero_based) throw ParseError(piece.line, piece.error);
            if (piece.stop == Stop::wider && (!wider || piece.feature > wider->feature)) wider = &piece;
            zero_based |= piece.stop == Stop::zero_based;
        }
        if (!wider && !zero_based) return false;
        const std::size_t shift = zero_based ? 1 : 0;
        std::size_t stride = matrix_.stride() + shift;
        base_ -= static_cast<std::int64_t>(shift);
        width_ += shift && width_;
        for (Piece& piece : pieces) piece.width += shift && piece.width;
        if (wider) {
            const std::size_t needed = wider->feature - static_cast<std::uint64_t>(base_) + 1;
            widest_ = {wider->line, wider->feature};
            refuse_emptiness(needed, rows);
            stride = std::max(needed, stride + stride / 4);
        }
        matrix_.widen(rows, stride, shift);
        return true;
    }

    // Memory stays within a multiple of what the text holds: one wrong id must not cost gigabytes.
    void refuse_emptiness(std::size_t width, std::size_t rows) const {
        constexpr double always_allowed = 256.0 * 1024 * 1024, allowed_per_byte = 256;
        constexpr double cell = 4, name = 128;  // bytes; every column has a name, in Python
        const double needed = static_cast<double>(width) * (cell * static_cast<double>(rows) + name);
        if (options_.features >= 0 || needed <= always_allowed || needed <= allowed_per_byte * static_cast<double>(bytes_)) return;
        throw ParseError(widest_.line, "feature id " + std::to_string(widest_.feature) + " would need " + std::to_string(width) + " columns for " +
                                           std::to_string(rows) +
                                           " rows, nearly all of them empty; correct the id, "
                                           "or renumber the features that occur from 1");
    }

    void gather(Piece& piece) {
        width_ = std::max(width_, piece.width);
        const std::size_t known = out_.query.size();
        out_.query.resize(known + piece.rows);
        for (std::size_t i = 0; i < piece.queries.size(); ++i) {
            const std::size_t last = i + 1 < piece.queries.size() ? piece.queries[i + 1].first : known + piece.rows;
            std::fill(out_.query.begin() + piece.queries[i].first, out_.query.begin() + last, query_number(piece.queries[i].second));
        }
        if (piece.comment.empty()) return;
        const auto offset = static_cast<std::int64_t>(out_.comments.size());
        out_.comments += piece.comments;
        append(out_.comment, piece.comment, offset, known, piece.rows);
        append(out_.docid, piece.docid, offset, known, piece.rows);
    }
    static void append(std::vector<Span>& spans, const std::vector<Span>& more, std::int64_t offset, std::size_t known, std::size_t rows) {
        spans.resize(known + rows);
        for (std::size_t i = 0; i < more.size(); ++i) spans[known + i] = {more[i].start + offset, more[i].stop + offset};
    }

    std::int64_t query_number(std::string_view name) {
        const auto [found, fresh] = query_numbers_.try_emplace(std::string(name), static_cast<std::int64_t>(query_names_.size()));
        if (fresh) query_names_.emplace_back(name);
        return found->second;
    }

    // Stores the comment without its outer blanks, and where in it the document's id is: after 'docid =', or all of it
    // when it is a single word.
    void keep_comment(Piece& piece, const char* p) {
        p = skip_blanks(p);
        const char* end = static_cast<const char*>(std::memchr(p, '\n', piece.end - p));
        while (end > p && blank(end[-1])) --end;
        const std::size_t index = piece.row - piece.first_row;
        piece.comment.resize(index + 1);
        piece.docid.resize(index + 1);
        const auto offset = static_cast<std::int64_t>(piece.comments.size());
        const std::string_view text(p, end - p);
        piece.comment[index] = {offset, offset + static_cast<std::int64_t>(text.size())};
        const auto [from, to] = find_docid(text);
        piece.docid[index] = {offset + static_cast<std::int64_t>(from), offset + static_cast<std::int64_t>(to)};
        piece.comments += text;
    }
    static std::pair<std::size_t, std::size_t> find_docid(std::string_view text) {
        constexpr std::string_view blanks = " \t\r";
        std::size_t from = 0;
        if (const std::size_t word = text.find("docid"); word != text.npos) {
            from = text.find_first_not_of(blanks, word + 5);
            if (from != text.npos && text[from] == '=') from = text.find_first_not_of(blanks, from + 1);
            if (from == text.npos) return {0, 0};
        } else if (text.find_first_of(blanks) != text.npos) {
            return {0, 0};
        }
        return {from, std::min(text.find_first_of(blanks, from), text.size())};
    }

    LetorOptions options_;
    std::vector<std::int64_t> exact_place_;  // of each column among the exact ones, or -1
    std::vector<double> exact_;
    GrowingMatrix matrix_;
    LetorRows out_;
    std::size_t rows_ = 0, width_ = 0;
    std::uint64_t bytes_ = 0;
    std::int64_t lines_ = 0, base_;
    struct {
        std::int64_t line = 0;
        std::uint64_t feature = 0;
    } widest_;
    std::string carry_;
    std::vector<std::string> query_names_;
    std::unordered_map<std::string, std::int64_t> query_numbers_;
};

}  // namespace exactrank
