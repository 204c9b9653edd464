#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"

namespace stagecraft {

// The vocabulary of llama2.c (tokenizer.bin, made by its tokenizer.py), described as a
// tokenizer.json does. The file is little-endian:
//   int32                       the length of the longest token
//   f32, int32, that many bytes  a score, a length and a text per token, to the end of the file
// It is Llama's sentencepiece vocabulary: 0 is unknown, 1 begins a text, 2 ends it, 3 to 258 stand
// for the 256 bytes (as <0x0A> or as the byte itself) if all of them do. Spaces are written as
// such.
//
// `vocab_size`: how many tokens the model has, if that is known. Throws Error naming the file and
// the token.
Json describe_llama2c_tokenizer(const std::filesystem::path& path,
                                std::optional<std::size_t> vocab_size);

// Where the vocabulary of the llama2.c file `model` lies: beside it, as tok512.bin for a model of
// 512 tokens or as tokenizer.bin; nullopt where neither is there.
std::optional<std::filesystem::path> find_llama2c_tokenizer(const std::filesystem::path& model,
                                                            std::size_t vocab_size);
// That one, with as many tokens as the model has. Throws Error naming both where neither is there.
Json describe_llama2c_tokenizer_beside(const std::filesystem::path& model, std::size_t vocab_size);

}  // namespace stagecraft
