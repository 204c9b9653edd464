#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/gguf_metadata.h"

namespace stagecraft {

// The vocabulary in the metadata of a GGUF file ("tokenizer.ggml.*"), described as a tokenizer.json
// does, so that there is one tokenizer and not two:
//   model "gpt2"   byte-level BPE; how text is cut is known by the name in "tokenizer.ggml.pre"
//   model "llama"  sentencepiece BPE: what two tokens merge into goes by the scores
// Control and unknown tokens become special added tokens, user-defined ones added tokens; unused
// ones are left out. Throws Error naming the key for what is missing, wrong or not supported.
Json describe_gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace stagecraft
