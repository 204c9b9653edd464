#pragma once

#include <functional>
#include <memory>
#include <span>

#include "course/worker/exchange.h"
#include "tensor/matrix.h"

namespace stagecraft::stages {

// The arguments of one call, each in memory of its own with guard zones around (and, with a gap,
// between its rows), so that what a function writes where it must not is seen.
class Arguments {
 public:
  explicit Arguments(const Request& request);
  ~Arguments();

  double scalar(const std::string& name) const;
  std::size_t size(const std::string& name) const;  // a scalar that is a whole number
  const std::string& text(const std::string& name) const;
  std::span<const float> vector(const std::string& name);
  MatrixView<const float> matrix(const std::string& name);
  // An input whose memory the call itself writes to, before the function has it or afterwards.
  MatrixView<float> lent_matrix(const std::string& name);
  // An input that the function reads and writes; its values afterwards are an output.
  MatrixView<float> in_out(const std::string& name);
  // Outputs: filled with a value that says "untouched". Where the request says that the output is
  // to be the memory of an input, it is that.
  std::span<float> out_vector(const std::string& name, std::size_t size);
  MatrixView<float> out_matrix(const std::string& name, std::size_t rows, std::size_t cols);

  bool has(const std::string& name) const;  // an input that not every request brings

  std::vector<int> integers(const std::string& name) const;  // an input of whole numbers

  // Something that the function computed on its way. Of two with one name, the later one is kept.
  void record(const std::string& name, MatrixView<const float> value);
  void record(const std::string& name, std::span<const float> values);
  void record(const std::string& name, std::span<const int> numbers);

  // Makes a call that may have to be refused with an Error, where the request says so
  // ("refusable"): then whether it was is an output, "Error". Elsewhere an Error goes on its way.
  void call(const std::function<void()>& function);

  // Memory beside something that the call keeps itself was written: "before" or "after" it.
  void tell_overrun(const std::string& name, const std::string& side);
  // What the call may only read was changed.
  void tell_changed(const std::string& name) { changed_input_ = name; }

  // After the call: the outputs under their names with `suffix`, and what was written wrongly.
  void collect(const std::string& suffix, Response& response) const;

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
