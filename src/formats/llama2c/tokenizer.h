#pragma once

#include <filesystem>
#include <optional>

#include "base/json.h"

namespace stagecraft {

// Describes the vocabulary of llama2.c (tokenizer.bin, made by its tokenizer.py) as a
// tokenizer.json. The file is little-endian:
//   int32                       the length of the longest token
//   f32, int32, that many bytes  a score, a length and a text per token, to the end of the file
// It is Llama's sentencepiece vocabulary: id 0 is the unknown token, 1 begins a text, 2 ends it. 3
// to 258 are the 256 bytes, if all of them are spelt as bytes (<0x0A>, or the byte itself). Spaces
// are written as spaces.
//
// `vocab_size`: the number of tokens of the model, if known. Throws Error naming the file and the
// token.
Json describe_llama2c_tokenizer(const std::filesystem::path& path,
                                std::optional<std::size_t> vocab_size);

// The path of the vocabulary for the llama2.c file `model`: beside it, tok512.bin for a model of
// 512 tokens, or else tokenizer.bin; nullopt if neither exists.
std::optional<std::filesystem::path> find_llama2c_tokenizer(const std::filesystem::path& model,
                                                            std::size_t vocab_size);
// Describes that file, which must have `vocab_size` tokens. Throws Error naming both if neither
// exists.
Json describe_llama2c_tokenizer_beside(const std::filesystem::path& model, std::size_t vocab_size);

}  // namespace stagecraft
