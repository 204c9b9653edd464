#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/token.h"

namespace stagecraft {

// Written by reference/make_tokenizers.py: small tokenizers, and what the tokenizers library (the
// sentencepiece library for spm_*) gives for many texts.
inline const std::vector<std::string> kTokenizers = {"added_tokens",
                                                     "gemma4",
                                                     "gpt2",
                                                     "llama2",
                                                     "llama3",
                                                     "lowercase",
                                                     "metaspace_always",
                                                     "metaspace_first",
                                                     "normalized_specials",
                                                     "qwen2",
                                                     "smollm",
                                                     "spm_bpe",
                                                     "spm_bpe_rules",
                                                     "spm_unigram",
                                                     "spm_unigram_bytes",
                                                     "unigram",
                                                     "unigram_bytes"};

inline std::filesystem::path tokenizers_folder() {
  return std::filesystem::path(TEST_DATA) / "tokenizers";
}

inline std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

struct TokenizerCase {
  std::string text;
  std::vector<TokenId> ids;
  std::vector<TokenId> plain;   // with special tokens read as text
  std::vector<TokenId> before;  // what the post-processor adds around `ids`
  std::vector<TokenId> after;
  std::string decoded;  // from `ids`
};

inline std::vector<TokenizerCase> read_cases(const std::string& tokenizer) {
  std::vector<TokenizerCase> cases;
  for (const auto& line : read_json_lines(tokenizers_folder() / tokenizer / "cases.jsonl")) {
    TokenizerCase made;
    made.text = line.at("text").get<std::string>();
    made.ids = line.at("ids").get<std::vector<TokenId>>();
    made.plain = line.value("plain", made.ids);
    made.before = line.value("before", std::vector<TokenId>());
    made.after = line.value("after", std::vector<TokenId>());
    made.decoded = line.value("decoded", made.text);
    cases.push_back(std::move(made));
  }
  return cases;
}

}  // namespace stagecraft
