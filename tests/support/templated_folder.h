#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace stagecraft {

// A model folder with only what a conversation needs: the tokenizer of tests/data/tokenizers/NAME
// with more added tokens, and a tokenizer_config.json.
class TemplatedFolder {
 public:
  TemplatedFolder(const std::string& tokenizer, const nlohmann::json& added_tokens,
                  const nlohmann::json& tokenizer_config = nullptr) {
    auto json = nlohmann::json::parse(
        read_file(std::string(TEST_DATA) + "/tokenizers/" + tokenizer + "/tokenizer.json"));
    auto& all = json["added_tokens"];
    for (const auto& token : added_tokens) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i]["content"] == token["content"]) all.erase(i--);
      }
      all.push_back(token);
    }
    write_file(folder_.file("tokenizer.json"), json.dump());
    if (!tokenizer_config.is_null()) {
      write_file(folder_.file("tokenizer_config.json"), tokenizer_config.dump());
    }
  }

  std::filesystem::path path() const { return folder_.path(); }
  void write(const std::string& file, const std::string& text) const {
    write_file(folder_.file(file), text);
  }

  // Special tokens with these contents and unused ids.
  static nlohmann::json special(const std::vector<std::string>& contents) {
    auto tokens = nlohmann::json::array();
    int id = 5000;
    for (const std::string& content : contents) {
      tokens.push_back({{"id", id++},
                        {"content", content},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false},
                        {"special", true}});
    }
    return tokens;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace stagecraft
