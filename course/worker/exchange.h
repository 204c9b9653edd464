#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tensor/stored_tensor.h"

namespace stagecraft::stages {

// What the judge (the gate) and a worker, which links a student's code, send to each other: one
// file with the request, one file with the response, both safetensors. They share no memory.

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
  std::string alias = {};  // the input whose memory the output must use; empty: none
  std::size_t gap = 0;     // elements between the rows of a matrix
  bool wider = false;      // fill the gaps of inputs with numbers, as in a wider matrix; else NaN
  std::size_t calls = 1;   // how often to call, each time with fresh copies of the inputs
  // Other arguments for the same function: one call each, in the same process, after the calls
  // above.
  struct Other {
    std::map<std::string, Tensor> inputs;
    std::map<std::string, double> scalars;
    std::map<std::string, std::string> texts = {};
  };
  std::vector<Other> others = {};
  // Two calls from two threads, repeated: first side by side, then the first inside the second,
  // which is the longer one. For each, the response has the first answer, or an answer that differs
  // from it.
  bool at_once = false;

  std::size_t n_calls() const { return calls + others.size(); }
  Request call(std::size_t number) const;  // call 1, 2 ... as a request of its own

  void write(const std::filesystem::path& path) const;
  static Request read(const std::filesystem::path& path);
};

struct Response {
  // Refused: it threw Error; Threw: it threw anything else.
  enum class Status { Done, NotWritten, Refused, Threw };
  Status status = Status::Done;
  std::string message;                    // of all but Done; empty if what it threw has none
  std::map<std::string, Tensor> outputs;  // by output_name
  std::string overrun;                    // the argument beside which the function wrote, or empty
  std::string overrun_side;               // "before", "between" (its rows) or "after"
  std::string changed_input;              // an input that was written to, or empty

  // A worker may be hostile: a response is refused if its JSON header is longer than any of ours,
  // and its texts are cut.
  static constexpr std::size_t kMaxHeader = std::size_t{1} << 20;
  static constexpr std::size_t kMaxText = std::size_t{4} << 10;

  void write(const std::filesystem::path& path) const;
  static Response read(const std::filesystem::path& path);
};

// The name of an output in a response; calls are numbered from 1: "y", and from the second call on
// "y#2".
std::string output_name(const std::string& name, std::size_t call);

// The numbers of a tensor in a file of theirs. Throws Error if they are not F32.
Tensor tensor_of(const StoredTensor& stored);

// At most `most` bytes of a text; "..." follows if it was cut.
std::string shortened(std::string text, std::size_t most);

// A text that may not be UTF-8 is sent as the numbers of its bytes.
std::vector<int> bytes_of(const std::string& text);
// The text of such numbers; '?' for a number that is no byte.
template <class Numbers>
std::string text_of_bytes(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) {
    const bool is_byte = number >= 0 && number < 256;  // NaN is not
    text += is_byte ? static_cast<char>(static_cast<unsigned char>(number)) : '?';
  }
  return text;
}

// The value of every element of an output before the call: a NaN with a bit pattern that no
// arithmetic produces. So an element that was never written differs from a NaN that was computed.
float untouched_value();
bool is_untouched(float value);
// True if the value was computed from such an element: one that was never written, or one outside
// of an argument.
bool is_made_of_untouched(float value);

}  // namespace stagecraft::stages
