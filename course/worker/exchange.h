#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace stagecraft::stages {

// What the judge (the gate) and the judged (a worker, which links a student's code) tell each
// other: one file there, one file back, both safetensors. Neither trusts the other's memory.

struct Tensor {
  std::vector<std::size_t> shape;
  std::vector<float> values;

  std::size_t rows() const { return shape.size() == 2 ? shape[0] : 1; }
  std::size_t cols() const { return shape.empty() ? 1 : shape.back(); }
};

struct Request {
  std::string function;                           // "rms_norm"
  std::map<std::string, Tensor> inputs;           // by argument
  std::map<std::string, double> scalars;          // by argument
  std::map<std::string, std::string> texts = {};  // by argument: paths, prompts
  std::string alias = {};  // an output that is to be the same memory as this input; empty: none
  std::size_t gap = 0;     // rows of matrices lie this many elements apart
  bool wider = false;  // between rows of inputs lie numbers, as in a wider matrix; else what is NaN
  std::size_t calls = 1;  // how often to call, each time with fresh copies of the inputs
  // Other arguments for the same function: one call each, in the same process, after those above.
  struct Other {
    std::map<std::string, Tensor> inputs;
    std::map<std::string, double> scalars;
    std::map<std::string, std::string> texts = {};
  };
  std::vector<Other> others = {};
  // Two calls from two threads, again and again: side by side, and the first in the middle of the
  // second, which is the longer one. Of each, the first answer is told, or one that differs from
  // it.
  bool at_once = false;

  std::size_t n_calls() const { return calls + others.size(); }
  Request call(std::size_t number) const;  // number 1, 2 ... as a request of its own

  void write(const std::filesystem::path& path) const;
  static Request read(const std::filesystem::path& path);
};

struct Response {
  enum class Status { Done, NotWritten, Threw };
  Status status = Status::Done;
  std::string message;                    // of NotWritten and Threw
  std::map<std::string, Tensor> outputs;  // "y", and "y#2" from the second call
  std::string overrun;                    // an argument beside which memory was written, or empty
  std::string overrun_side;               // "before", "between" (its rows) or "after"
  std::string changed_input;              // an input that was written to, or empty

  // A worker may be hostile: what it writes is refused where its header, which is JSON, is longer
  // than any of ours, and its texts are cut.
  static constexpr std::size_t kMaxHeader = std::size_t{1} << 20;
  static constexpr std::size_t kMaxText = std::size_t{4} << 10;

  void write(const std::filesystem::path& path) const;
  static Response read(const std::filesystem::path& path);
};

// At most so many bytes of a text, and whether there was more: "...".
std::string shortened(std::string text, std::size_t most);

// A text that need not be UTF-8 travels as the numbers of its bytes.
std::vector<int> bytes_of(const std::string& text);
// The text again; '?' for what is no byte of one.
template <class Numbers>
std::string text_of_bytes(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) {
    const bool is_byte = number >= 1 && number < 256;  // NaN is not
    text += is_byte ? static_cast<char>(static_cast<unsigned char>(number)) : '?';
  }
  return text;
}

// What an output holds before the call: a NaN of a pattern that no arithmetic produces, so that an
// element nobody wrote can be told from a NaN that was computed.
float untouched_value();
bool is_untouched(float value);
// Was it computed from such an element: one that was never written, or lies outside an argument?
bool is_made_of_untouched(float value);

}  // namespace stagecraft::stages
