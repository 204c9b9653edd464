#pragma once

#include <functional>
#include <memory>
#include <span>

#include "course/worker/exchange.h"
#include "tensor/matrix.h"

namespace stagecraft::stages {

// The arguments of one call. Each has memory of its own with guard zones before and after it (and,
// with a gap, between its rows), so that writes to a wrong place are found.
class Arguments {
 public:
  explicit Arguments(const Request& request);
  ~Arguments();

  double scalar(const std::string& name) const;
  std::size_t size(const std::string& name) const;  // a scalar that is a whole number
  const std::string& text(const std::string& name) const;
  std::span<const float> vector(const std::string& name);
  MatrixView<const float> matrix(const std::string& name);
  // An input whose memory the worker's call code writes to, before or after the function reads it.
  MatrixView<float> lent_matrix(const std::string& name);
  // An input that the function reads and writes; its final values are an output.
  MatrixView<float> in_out(const std::string& name);
  // Outputs. They are filled with untouched_value(). If the request's alias names an input, the
  // output is the memory of that input.
  std::span<float> out_vector(const std::string& name, std::size_t size);
  MatrixView<float> out_matrix(const std::string& name, std::size_t rows, std::size_t cols);

  bool has(const std::string& name) const;  // an optional input

  std::vector<int> integers(const std::string& name) const;  // an input that holds whole numbers

  // An intermediate result. A second record with the same name replaces the first.
  void record(const std::string& name, MatrixView<const float> value);
  void record(const std::string& name, std::span<const float> values);
  void record(const std::string& name, std::span<const int> numbers);

  // Makes a call. If the request has the input "refusable", the output "Error" says whether the
  // call threw Error: 0 or 1. Otherwise the exception passes through.
  void call(const std::function<void()>& function);

  // For memory that the call code owns itself: it was written to `side` ("before" or "after") of
  // it.
  void tell_overrun(const std::string& name, const std::string& side);
  // For something that the function may only read: it was changed.
  void tell_changed(const std::string& name) { changed_input_ = name; }

  // After call number `call`: stores its outputs and the wrong writes.
  void collect(std::size_t call, Response& response) const;

 private:
  struct Block;
  Block& load(const std::string& name);
  Block& load_read_only(const std::string& name);
  Block& make(const std::string& name, std::size_t rows, std::size_t cols, bool flat);

  const Request& request_;
  std::map<std::string, Tensor> recorded_;
  std::string overrun_;
  std::string overrun_side_;
  std::string changed_input_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace stagecraft::stages
