#include "tests/gates/chat_questions.h"

#include "course/judge/kept_requests.h"
#include "course/judge/messages.h"
#include "text/tokenizer.h"

namespace stagecraft::stages {

std::filesystem::path chat_model(const std::string& name, const TinyChatModel::Options& options) {
  const TinyChatModel model(options);
  const std::filesystem::path folder = folder_for_files(name);
  using Options = std::filesystem::copy_options;
  std::filesystem::copy(model.folder(), folder, Options::recursive | Options::overwrite_existing);
  return folder;
}

const std::filesystem::path& usual() {
  static const std::filesystem::path folder = chat_model("chat model");
  return folder;
}

std::string words(Inputs& inputs, std::size_t count) {
  static const std::vector<std::string> kWords = {"hello", "the",  "user", "order", "in", "an",
                                                  "2 + 2", "你好", "é",    "?",     "\n", "hell"};
  std::string text;
  for (std::size_t n = 0; n < count; ++n) {
    if (n > 0 && inputs.size(0, 3) > 0) text += " ";
    text += kWords[inputs.size(0, kWords.size() - 1)];
  }
  return text;
}

Spell spelling(const std::filesystem::path& folder) {
  const auto tokenizer = std::make_shared<const Tokenizer>(Tokenizer::open(folder));
  return [tokenizer](int token) -> std::string {
    if (token < 0 || static_cast<std::size_t>(token) >= tokenizer->vocab_size()) {
      return fmt::format("{}", token);
    }
    if (tokenizer->is_special(token)) return std::string(tokenizer->token_of(token));
    std::string text = tokenizer->decode(std::vector<TokenId>{token});
    if (text.empty()) text = tokenizer->token_of(token);  // "▁" at the start of a text
    return stages::quoted(text);
  };
}

}  // namespace stagecraft::stages
