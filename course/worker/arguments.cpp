#include "course/worker/arguments.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "base/round_up.h"
#include "course/worker/forbidden_memory.h"
#include "course/worker/stopped_thread.h"

namespace stagecraft::stages {
namespace {

constexpr std::size_t kGuard = 64;  // elements before and after

// The memory of the arguments of the last call in this thread. The next call gets it again, if it
// is large enough: the model, too, passes new numbers at old addresses. With a sanitizer each call
// has fresh memory, so that it finds pointers that a function keeps.
thread_local std::vector<std::vector<float>> last_memory;

}  // namespace

// kGuard elements, then rows * (cols + gap), then kGuard again; all but the matrix itself is
// untouched_value(). Under a sanitizer, the memory around the matrix is forbidden, and an input has
// pages of its own that are read-only.
struct Arguments::Block {
  std::string name;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t stride = 0;
  bool flat = false;  // a vector: its shape has one dimension
  bool output = false;
  std::vector<float> memory;
  std::size_t begin = kGuard;  // index of the matrix in `memory`
  std::vector<float> before_the_call;
  bool read_only = false;

  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { open(); }

  float* data() { return memory.data() + begin; }
  const float* data() const { return memory.data() + begin; }
  // The pointer for the call. A matrix without elements gets a page that cannot be read.
  float* lent() { return rows * cols == 0 ? static_cast<float*>(forbidden_page()) : data(); }
  MatrixView<float> view() { return {lent(), rows, cols, stride}; }

  void take_memory() {
    const std::size_t pages = has_sanitizer() ? 2 * kPage / sizeof(float) : 0;
    memory.assign(pages + kGuard + rows * stride + kGuard + pages, untouched_value());
    if (pages == 0) return;
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data() + kGuard);
    begin = kGuard + (kPage - address % kPage) / sizeof(float);
  }
  std::size_t bytes() const { return rows * stride * sizeof(float); }
  std::size_t bytes_in_pages() const { return round_up(bytes(), kPage); }

  // close() protects the memory for the call, open() ends this.
  void close() {
    if (!has_sanitizer()) return;
    forbid(memory.data(), begin * sizeof(float));
    for (std::size_t r = 0; r < rows; ++r) {
      forbid(data() + r * stride + cols, (stride - cols) * sizeof(float));
    }
    const std::size_t end = begin + rows * stride;
    forbid(memory.data() + end, (memory.size() - end) * sizeof(float));
    if (read_only) forbid_writing(data(), bytes_in_pages());
  }
  void open() {
    if (!has_sanitizer()) return;
    allow_writing(data(), bytes_in_pages());
    allow(memory.data(), memory.size() * sizeof(float));
  }

  // Fills the gap after a row with numbers that look like those of the row.
  void fill_gap(std::size_t row) {
    const std::size_t end = (row + 1) * stride;
    for (std::size_t i = row * stride + cols; i < end; ++i) data()[i] = -data()[i - cols];
  }

  bool is_changed(std::size_t first, std::size_t last) const {
    return std::memcmp(memory.data() + first, before_the_call.data() + first,
                       (last - first) * sizeof(float)) != 0;
  }
  std::string overrun_side() const {
    if (is_changed(0, begin)) return "before";
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t row = begin + r * stride;
      if (is_changed(row + cols, row + stride)) return "between";
    }
    return is_changed(begin + rows * stride, memory.size()) ? "after" : "";
  }
};

Arguments::Arguments(const Request& request) : request_(request) {}

Arguments::~Arguments() {
  if (has_sanitizer()) return;
  const Stoppable stoppable(false);
  last_memory.clear();
  for (const auto& block : blocks_) last_memory.push_back(std::move(block->memory));
}

double Arguments::scalar(const std::string& name) const {
  const auto found = request_.scalars.find(name);
  if (found == request_.scalars.end()) throw Error("request: scalar '{}' is missing", name);
  return found->second;
}

std::size_t Arguments::size(const std::string& name) const {
  return static_cast<std::size_t>(scalar(name));
}

const std::string& Arguments::text(const std::string& name) const {
  const auto found = request_.texts.find(name);
  if (found == request_.texts.end()) throw Error("request: text '{}' is missing", name);
  return found->second;
}

std::vector<int> Arguments::integers(const std::string& name) const {
  const auto found = request_.inputs.find(name);
  if (found == request_.inputs.end()) throw Error("request: input '{}' is missing", name);
  return {found->second.values.begin(), found->second.values.end()};
}

Arguments::Block& Arguments::make(const std::string& name, std::size_t rows, std::size_t cols,
                                  bool flat) {
  const Stoppable stoppable(false);
  auto block = std::make_unique<Block>();
  block->name = name;
  block->rows = rows;
  block->cols = cols;
  // No two arguments have the same gap: code may not use the stride of one for another.
  const std::size_t gap = flat || request_.gap == 0 ? 0 : request_.gap + 2 * blocks_.size();
  block->stride = std::max<std::size_t>(1, cols + gap);
  block->flat = flat;
  // AddressSanitizer can forbid the end of a group of 8 bytes, but not its beginning.
  if (has_sanitizer() && block->stride > cols) block->stride += block->stride % 2;
  if (blocks_.size() < last_memory.size()) block->memory.swap(last_memory[blocks_.size()]);
  block->take_memory();
  block->before_the_call = block->memory;
  return *blocks_.emplace_back(std::move(block));
}

Arguments::Block& Arguments::load(const std::string& name) {
  const Stoppable stoppable(false);
  const auto found = request_.inputs.find(name);
  if (found == request_.inputs.end()) throw Error("request: input '{}' is missing", name);
  const Tensor& tensor = found->second;
  Block& block = make(name, tensor.rows(), tensor.cols(), tensor.shape.size() == 1);
  for (std::size_t r = 0; r < block.rows; ++r) {
    std::copy_n(tensor.values.begin() + static_cast<std::ptrdiff_t>(r * block.cols), block.cols,
                block.data() + r * block.stride);
    if (request_.wider && r + 1 < block.rows) block.fill_gap(r);
  }
  block.before_the_call = block.memory;
  block.close();
  return block;
}

Arguments::Block& Arguments::load_read_only(const std::string& name) {
  Block& block = load(name);
  block.read_only = true;
  block.close();
  return block;
}

std::span<const float> Arguments::vector(const std::string& name) {
  Block& block = load_read_only(name);
  return {block.lent(), block.cols};
}

MatrixView<const float> Arguments::matrix(const std::string& name) {
  return load_read_only(name).view();
}

MatrixView<float> Arguments::lent_matrix(const std::string& name) { return load(name).view(); }

MatrixView<float> Arguments::in_out(const std::string& name) {
  Block& block = load(name);
  block.output = true;
  return block.view();
}

std::span<float> Arguments::out_vector(const std::string& name, std::size_t size) {
  const MatrixView<float> view = out_matrix(name, 1, size);
  for (const auto& block : blocks_) block->flat |= block->name == name;
  return {view.data(), size};
}

MatrixView<float> Arguments::out_matrix(const std::string& name, std::size_t rows,
                                        std::size_t cols) {
  if (!request_.alias.empty()) {
    for (const auto& block : blocks_) {
      if (block->name != request_.alias) continue;
      block->name = name;
      block->output = true;
      block->open();
      block->read_only = false;
      block->close();
      return block->view();
    }
  }
  Block& block = make(name, rows, cols, false);
  block.output = true;
  block.close();
  return block.view();
}

void Arguments::tell_overrun(const std::string& name, const std::string& side) {
  if (overrun_.empty()) overrun_ = name;
  overrun_side_ = side;
}

bool Arguments::has(const std::string& name) const { return request_.inputs.count(name) != 0; }

void Arguments::record(const std::string& name, MatrixView<const float> value) {
  Tensor& tensor = recorded_[name];
  tensor = {{value.rows(), value.cols()}, {}};
  for (std::size_t r = 0; r < value.rows(); ++r) {
    tensor.values.insert(tensor.values.end(), value.row(r).begin(), value.row(r).end());
  }
}

void Arguments::record(const std::string& name, std::span<const float> values) {
  recorded_[name] = {{values.size()}, {values.begin(), values.end()}};
}

void Arguments::record(const std::string& name, std::span<const int> numbers) {
  recorded_[name] = {{numbers.size()}, {numbers.begin(), numbers.end()}};
}

void Arguments::call(const std::function<void()>& function) {
  if (!has("refusable")) return function();
  int refused = 0;
  try {
    function();
  } catch (const Error&) {
    refused = 1;
  }
  record("Error", std::vector<int>{refused});
}

void Arguments::collect(std::size_t call, Response& response) const {
  for (const auto& [name, tensor] : recorded_) {
    response.outputs[output_name(name, call)] = tensor;
  }
  if (!overrun_.empty()) {
    response.overrun = overrun_;
    response.overrun_side = overrun_side_;
  }
  if (!changed_input_.empty()) response.changed_input = changed_input_;
  for (const auto& block : blocks_) {
    block->open();
    if (const std::string side = block->overrun_side(); !side.empty()) {
      response.overrun = block->name;
      response.overrun_side = side;
    }
    if (!block->output) {
      if (block->is_changed(0, block->memory.size()) && response.overrun.empty()) {
        response.changed_input = block->name;
      }
      continue;
    }
    Tensor& tensor = response.outputs[output_name(block->name, call)];
    tensor.shape = block->flat ? std::vector{block->cols} : std::vector{block->rows, block->cols};
    for (std::size_t r = 0; r < block->rows; ++r) {
      const float* row = block->data() + r * block->stride;
      tensor.values.insert(tensor.values.end(), row, row + block->cols);
    }
  }
}

}  // namespace stagecraft::stages
