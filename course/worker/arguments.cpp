#include "course/worker/arguments.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace stagecraft::stages {
namespace {

constexpr std::size_t kGuard = 64;  // elements before and after

}  // namespace

// `kGuard` elements, then rows * (cols + gap), then `kGuard` again; all but the matrix itself
// untouched.
struct Arguments::Block {
  std::string name;
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t stride = 0;
  bool flat = false;  // a vector: its shape has one dimension
  bool output = false;
  std::vector<float> memory;
  std::vector<float> before_the_call;  // for inputs that must not change

  float* data() { return memory.data() + kGuard; }
  const float* data() const { return memory.data() + kGuard; }
  MatrixView<float> view() { return {data(), rows, cols, stride}; }

  bool inside(std::size_t i) const {
    return i >= kGuard && i < kGuard + rows * stride && (i - kGuard) % stride < cols;
  }
  std::string overrun_side() const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (inside(i) || is_untouched(memory[i])) continue;
      if (i < kGuard) return "before";
      return i < kGuard + rows * stride ? "between" : "after";
    }
    return {};
  }
};

Arguments::Arguments(const Request& request) : request_(request) {}
Arguments::~Arguments() = default;

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
  auto block = std::make_unique<Block>();
  block->name = name;
  block->rows = rows;
  block->cols = cols;
  block->stride = std::max<std::size_t>(1, cols + (flat ? 0 : request_.gap));
  block->flat = flat;
  block->memory.assign(kGuard + rows * block->stride + kGuard, untouched_value());
  return *blocks_.emplace_back(std::move(block));
}

Arguments::Block& Arguments::load(const std::string& name) {
  const auto found = request_.inputs.find(name);
  if (found == request_.inputs.end()) throw Error("request: input '{}' is missing", name);
  const Tensor& tensor = found->second;
  Block& block = make(name, tensor.rows(), tensor.cols(), tensor.shape.size() == 1);
  for (std::size_t r = 0; r < block.rows; ++r) {
    std::copy_n(tensor.values.begin() + static_cast<std::ptrdiff_t>(r * block.cols), block.cols,
                block.data() + r * block.stride);
  }
  block.before_the_call = block.memory;
  return block;
}

std::span<const float> Arguments::vector(const std::string& name) {
  Block& block = load(name);
  return {block.data(), block.cols};
}

MatrixView<const float> Arguments::matrix(const std::string& name) { return load(name).view(); }

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
      return block->view();
    }
  }
  Block& block = make(name, rows, cols, false);
  block.output = true;
  return block.view();
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

void Arguments::collect(const std::string& suffix, Response& response) const {
  for (const auto& [name, tensor] : recorded_) response.outputs[name + suffix] = tensor;
  for (const auto& block : blocks_) {
    if (const std::string side = block->overrun_side(); !side.empty()) {
      response.overrun = block->name;
      response.overrun_side = side;
    }
    if (!block->output) {
      const auto bytes = block->memory.size() * sizeof(float);
      if (std::memcmp(block->memory.data(), block->before_the_call.data(), bytes) != 0 &&
          response.overrun.empty()) {
        response.changed_input = block->name;
      }
      continue;
    }
    Tensor& tensor = response.outputs[block->name + suffix];
    tensor.shape = block->flat ? std::vector{block->cols} : std::vector{block->rows, block->cols};
    for (std::size_t r = 0; r < block->rows; ++r) {
      const float* row = block->data() + r * block->stride;
      tensor.values.insert(tensor.values.end(), row, row + block->cols);
    }
  }
}

}  // namespace stagecraft::stages
