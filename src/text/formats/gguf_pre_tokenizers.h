#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// What a name in "tokenizer.ggml.pre" stands for, in the words of a tokenizer.json.
struct GgufPreTokenizer {
  std::string_view normalizer;  // JSON
  std::string pre_tokenizer;    // JSON
  bool ignore_merges = false;   // a piece that is a token is that token
  bool adds_bos = false;        // where "tokenizer.ggml.add_bos_token" says nothing
};

// All names that are known, of several for one thing the most usual first.
std::vector<std::string_view> gguf_pre_tokenizer_names();

// nullptr if the name is not known.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);

}  // namespace stagecraft
