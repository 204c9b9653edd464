#include "programs/chat_options.h"

#include <memory>

#include "programs/options.h"

namespace stagecraft {

void add_template_variables_to(CLI::App& command, std::string& json) {
  command
      .add_option("--chat-template-kwargs", json,
                  "Variables of the chat template, such as "
                  "'{\"enable_thinking\": false}' for Qwen3")
      ->check(not_empty("a JSON object"))
      ->type_name("JSON");
}

ChatFormat open_chat_format(const ModelSource& model, const Tokenizer& tokenizer,
                            const std::string& chat_template, const std::string& variables,
                            std::optional<std::tm> now) {
  ChatFormat::Options options{chat_template, "--chat-template", {}, now};
  if (!variables.empty()) {
    options.variables = std::make_shared<const Json>(value_of_command_line(
        [&] { return parse_json_object(variables, "--chat-template-kwargs"); }));
  }
  try {
    return ChatFormat::open(model, tokenizer, options);
  } catch (const ChatOptionError& error) {
    throw CLI::ValidationError(error.what());
  }
}

}  // namespace stagecraft
