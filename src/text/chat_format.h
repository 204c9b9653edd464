#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "text/chat_template.h"
#include "text/marked_text.h"
#include "text/tool_call.h"

namespace stagecraft {

namespace jinja {
class Template;
}

// Names of variables of a chat template, and their values.
using TemplateVariables = std::vector<std::pair<std::string, JsonNode>>;

// A message that may call functions. With the role "tool" it holds the result of a call.
struct ToolMessage : Message {
  std::vector<ToolCall> calls;
  std::string call_id = {};  // with the role "tool": the id of the call that this result belongs to
  // For templates that read them; "" if the message has none.
  std::string name = {};       // of the speaker
  std::string reasoning = {};  // with the role "assistant": its thoughts before the content
};

// Thrown if ChatFormat::Options are wrong, not the model.
class ChatOptionError : public Error {
 public:
  using Error::Error;
};

// The time now, in the time zone of this machine.
std::tm local_time();

// The chat format of a model: which tokens surround each message.
//
//   --chat-template NAME|FILE           the first of these that exists
//   the model's own (Jinja)              -> does it write ChatML?
//   built in, by the vocabulary              yes: stage 8's message_tokens and answer_opening
//                                            no:  Jinja writes everything and marks typed text
//
// A model may have a second template (see chat_template_source.h), which writes the conversations
// with tools. If the template writes ChatML, the course's functions (or a student's) make the
// tokens of a conversation. Such a template may add a default system prompt. For any other
// template, Jinja writes the conversation.
class ChatFormat {
 public:
  struct Options {
    std::string chosen = {};  // a built-in template's name, or a file; empty: the model's own
    std::string option = "chat template";        // how the user gives `chosen`, for errors
    std::shared_ptr<const Json> variables = {};  // an object of variables for every conversation
    // For templates that print the date. Empty: the local time of each rendering.
    std::optional<std::tm> now = {};
  };
  // The format of a model; `tokenizer` must outlive it. Throws Error if a template is wrong, or if
  // the model has none and its vocabulary does not show which built-in template fits. Throws
  // ChatOptionError if `chosen` is neither a built-in template nor a file, if the template does not
  // read one of the variables, or if the format sets that one itself.
  static ChatFormat open(const ModelSource& model, const Tokenizer& tokenizer,
                         const Options& options);
  static ChatFormat open(const ModelSource& model, const Tokenizer& tokenizer) {
    return open(model, tokenizer, {});
  }

  // The tokens of a conversation and of the opening of the next answer. The roles are "system"
  // (only first), then "user" and "assistant" in turn, with "user" last. Contents stay text,
  // whatever they spell. Throws Error if the template rejects the conversation, a text in it is
  // not UTF-8, or the tokenizer would encode such a text with a token that ends an answer.
  std::vector<TokenId> tokens(std::span<const Message> messages) const;
  // The same for a conversation (at least one message) with function calls, or with roles in
  // another order. `tools` is the array of OpenAI's "tools"; `variables`, whose names sets_itself()
  // does not know, are visible to the template. The template writes the conversation, even if it is
  // ChatML, or rejects it. After an "assistant" message with calls come their results with the role
  // "tool". If the last message is one of "assistant" without calls, there is no opening: the
  // answer continues this message. Throws Error, too, if its content is blank, or not the end of
  // what the template writes of it.
  std::vector<TokenId> tokens(std::span<const ToolMessage> messages, std::optional<JsonNode> tools,
                              const TemplateVariables& variables = {}) const;
  // Whether the format itself gives the template a variable of this name, such as "messages".
  static bool sets_itself(std::string_view variable);
  // Whether a template reads a variable of this name.
  bool reads(std::string_view variable) const;
  // How the template writes calls. None: in no known form, or the template ignores functions, or
  // find_tool_form() was not called. That function renders probes to find out.
  ToolForm tool_form() const { return tool_form_; }
  void find_tool_form();

  // The conversation as the template writes it. tokens() uses it if the format is not ChatML.
  MarkedText text(std::span<const Message> messages, bool with_opening = true) const;

  // The tokens that end an answer; config.json may name more.
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }

  bool is_chatml() const { return is_chatml_; }
  // "llama3", "chat_template.jinja": for display.
  const std::string& name() const;

 private:
  explicit ChatFormat(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  void check_variables(const Json& variables) const;
  void recognise_chatml();
  void find_end_tokens();
  void add_end_token(const MarkedText& exchange);
  // The template of a conversation that has tools, or none.
  const jinja::Template& used_template(bool with_tools) const;
  MarkedText render(std::span<const ToolMessage> messages, std::optional<JsonNode> tools,
                    bool with_opening, const TemplateVariables& variables = {}) const;

  const Tokenizer* tokenizer_;
  std::shared_ptr<const jinja::Template> template_;
  std::shared_ptr<const jinja::Template> tools_template_;            // null: template_
  std::vector<std::pair<std::string, std::string>> special_tokens_;  // "bos_token": "<s>"
  std::shared_ptr<const Json> variables_;
  std::optional<std::tm> now_;
  bool is_chatml_ = false;
  std::optional<std::string> own_system_;  // ChatML: the template's default system prompt
  std::vector<TokenId> end_tokens_;
  ToolForm tool_form_ = ToolForm::None;
};

}  // namespace stagecraft
