#include "tensor/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace stagecraft {
namespace {

constexpr std::size_t kThreshold = 200;  // a tensor with more elements is shown in part
constexpr std::size_t kEdge = 3;         // elements shown at each end of such a row or column
constexpr std::size_t kLineWidth = 80;
constexpr std::string_view kOpening = "tensor(";

// The indices along one dimension that are shown. With a gap, "..." stands after the first kEdge.
struct Places {
  std::vector<std::size_t> shown;
  bool gap = false;
};

Places places(std::size_t size, bool summarize) {
  Places result;
  result.gap = summarize && size > 2 * kEdge;
  for (std::size_t i = 0; i < size; ++i) {
    if (!result.gap || i < kEdge || i + kEdge >= size) result.shown.push_back(i);
  }
  return result;
}

// Formats a tensor's elements as PyTorch does (torch/_tensor_str.py, class _Formatter): as whole
// numbers if all are whole; with powers of ten if their magnitudes differ by more than a factor of
// 1000 or are very small or large; all padded to the width of the widest.
class Format {
 public:
  Format(const std::vector<double>& values, bool has_fractions) : has_fractions_(has_fractions) {
    double smallest = 0.0;
    double largest = 0.0;
    for (const double value : values) {
      if (!has_fractions || value == 0.0 || !std::isfinite(value)) continue;
      const double size = std::abs(value);
      smallest = smallest == 0.0 ? size : std::min(smallest, size);
      largest = std::max(largest, size);
      if (value != std::ceil(value)) whole_ = false;
    }
    scientific_ =
        largest > 0.0 && (largest / smallest > 1000.0 || largest > 1e8 || smallest < 1e-4);
    for (const double value : values) {
      const bool counts = !has_fractions || (value != 0.0 && std::isfinite(value));
      if (counts) width_ = std::max(width_, text(value).size());
    }
  }

  std::size_t width() const { return width_; }
  std::string operator()(double value) const { return fmt::format("{:>{}}", text(value), width_); }

 private:
  std::string text(double value) const {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0.0 ? "-inf" : "inf";
    if (!has_fractions_) return fmt::format("{:.0f}", value);
    if (scientific_) return fmt::format("{:.4e}", value);
    return whole_ ? fmt::format("{:.0f}.", value) : fmt::format("{:.4f}", value);
  }

  bool has_fractions_;
  bool whole_ = true;
  bool scientific_ = false;
  std::size_t width_ = 1;
};

std::string row_text(const Printable& tensor, std::size_t row, const Places& cols,
                     const Format& format, std::size_t indent) {
  std::vector<std::string> words;
  for (const std::size_t col : cols.shown) {
    if (cols.gap && words.size() == kEdge) words.emplace_back(" ...");
    words.push_back(format(tensor.at(row, col)));
  }
  const std::size_t a_line = std::max<std::size_t>(1, (kLineWidth - indent) / (format.width() + 2));
  std::string text = "[";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i % a_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
    text += words[i];
  }
  return text + "]";
}

std::string matrix_text(const Printable& tensor, const Places& rows, const Places& cols,
                        const Format& format) {
  const std::string between = ",\n" + std::string(kOpening.size() + 1, ' ');
  std::string text = "[";
  std::size_t shown = 0;
  for (const std::size_t row : rows.shown) {
    if (shown > 0) text += between;
    if (rows.gap && shown == kEdge) text += "..." + between;
    text += row_text(tensor, row, cols, format, kOpening.size() + 1);
    ++shown;
  }
  return text + "]";
}

}  // namespace

std::string printed(const Printable& tensor, std::string_view name) {
  const std::size_t n_rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  const std::size_t n_cols = tensor.shape.empty() ? 1 : tensor.shape.back();
  const bool summarize = n_rows * n_cols > kThreshold;
  const Places rows = places(n_rows, summarize);
  const Places cols = places(n_cols, summarize);
  std::vector<double> values;
  for (const std::size_t row : rows.shown) {
    for (const std::size_t col : cols.shown) values.push_back(tensor.at(row, col));
  }
  const Format format(values, tensor.has_fractions);

  std::string body;
  if (values.empty()) {
    body = "[]";
  } else if (tensor.shape.empty()) {
    body = format(values.front());
  } else if (tensor.shape.size() == 1) {
    body = row_text(tensor, 0, cols, format, kOpening.size());
  } else {
    body = matrix_text(tensor, rows, cols, format);
  }
  return fmt::format("{}{}[{}]\n{}{})", name, name.empty() ? "" : " ",
                     fmt::join(tensor.shape, ", "), kOpening, body);
}

void print(const Printable& tensor, std::string_view name) {
  const std::string text = printed(tensor, name) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace stagecraft
