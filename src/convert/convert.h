#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/model_source.h"
#include "tensor/dtype.h"

namespace stagecraft {

// What to convert, and how. The source is any model that the engine can open.
struct Conversion {
  ModelSource model;
  std::filesystem::path out;
  std::optional<DType> dtype = {};            // of matrices; if not set, they keep their types
  std::optional<ModelSource> tokenizer = {};  // where the vocabulary is, if not with the model
  bool with_tokenizer = true;                 // false: write only weights and config
  bool replace = false;                       // whether to replace what exists at `out`
  std::function<void()> check = {};           // called before each piece is written; if it throws,
                                              // the conversion ends and leaves no file behind
};

struct Converted {
  std::size_t n_tensors = 0;
  std::size_t bytes = 0;                // size of the file with the weights
  std::vector<std::string> notes = {};  // what differs from the request, one line each
};

// Each function writes under a temporary name beside `out` and renames at the end. It converts one
// tensor after the other, in pieces. It throws Error naming the file, key or tensor if the target
// format cannot express something that would change the result, if a number does not fit, or if the
// output cannot be written.

// Writes a GGUF file. Norms and biases become F32. dtype: F32, F16, BF16, Q8_0, Q4_0 or Q4_1.
// Matrices whose rows are not a multiple of 32 become F16 instead of blocks, and a note says so.
Converted convert_to_gguf(const Conversion& conversion);

// Writes a Hugging Face folder: model.safetensors, config.json and the files of the tokenizer,
// which are copied if the source is a folder. If `out` is already a folder (`replace`), files of
// the old model that the new one does not have, such as a template or shards, are deleted. dtype:
// F32, F16 or BF16; if it is not set, quantised tensors become F32. The routers of experts keep
// their type.
Converted convert_to_folder(const Conversion& conversion);

// Writes a .flm file, all F32. The format has no merges: its readers encode text by the longest
// match.
Converted convert_to_flm(const Conversion& conversion);

}  // namespace stagecraft
