#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/model_source.h"
#include "tensor/dtype.h"

namespace stagecraft {

// A model in another format. The source is any model that the engine opens.
struct Conversion {
  ModelSource model;
  std::filesystem::path out;
  std::optional<DType> dtype = {};            // of matrices; without it they stay as they are
  std::optional<ModelSource> tokenizer = {};  // of the vocabulary, if not in or beside the model
  bool with_tokenizer = true;                 // false: weights and sizes alone
  bool replace = false;                       // what is at `out` already
  std::function<void()> check = {};           // called before each piece that is written; what it
                                              // throws ends the conversion, and nothing is left
};

struct Converted {
  std::size_t n_tensors = 0;
  std::size_t bytes = 0;                // of the file with the weights
  std::vector<std::string> notes = {};  // what did not go as asked, one line each
};

// Each writes beside `out` and renames at the end, tensor after tensor, a piece in memory at a
// time. They throw Error naming the file, key or tensor: where the target has no words for
// something that would change the result, where a number does not fit, where nothing can be
// written.

// A GGUF file. Norms and biases become F32. dtype: F32, F16, BF16, Q8_0, Q4_0 or Q4_1; matrices
// whose rows are no multiple of 32 become F16 instead of blocks, and a note says so.
Converted convert_to_gguf(const Conversion& conversion);

// A Hugging Face folder: model.safetensors, config.json and the files of the tokenizer, copied
// where the source is a folder. If `out` is a folder already (`replace`), the files of the model in
// it that this one does not have are deleted: a template, shards. dtype: F32, F16 or BF16;
// quantised tensors become F32 without one. The routers of experts stay as they are.
Converted convert_to_folder(const Conversion& conversion);

// A .flm file, all F32. Its vocabulary holds no merges: text is encoded by the longest match there.
Converted convert_to_flm(const Conversion& conversion);

}  // namespace stagecraft
