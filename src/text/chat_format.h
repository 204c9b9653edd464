#pragma once

#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/jinja/template.h"
#include "text/tool_call.h"

namespace stagecraft {

class JsonNode;

// A message that may call functions, or, of the role "tool", bring the result of a call.
struct ToolMessage : Message {
  std::vector<ToolCall> calls;
  std::string call_id;  // of a result: which call it belongs to
};

// How a model was taught to read a conversation: which tokens stand around what is said.
//
//   --chat-template NAME|FILE           the first of these that there is
//   the model's own (Jinja)              -> is what it writes ChatML?
//   built in, by the vocabulary              yes: stage 8's message_tokens and answer_opening
//                                            no:  Jinja writes it all, what was said marked in it
//
// A conversation with a model whose template is ChatML, perhaps with a system prompt of its own
// where none is given, is written by the course's function, which may be a student's. For every
// other model, its template writes it.
class ChatFormat {
 public:
  // Of a model, by its own template; the tokenizer must outlive it. `chosen` is the
  // name of a built-in template or a file with one; empty: the model's own. Throws Error if a
  // template is wrong, or if there is none and the vocabulary does not show which it could be.
  static ChatFormat open(const ModelSource& model, const Tokenizer& tokenizer,
                         const std::string& chosen = "");
  // The same on another day: some templates tell the model the date.
  static ChatFormat open(const ModelSource& model, const Tokenizer& tokenizer,
                         const std::string& chosen, const std::tm& now);
  // ChatML. Throws Error if the tokenizer lacks its tokens.
  static ChatFormat chatml(const Tokenizer& tokenizer);

  // The tokens of a conversation and of the opening of the answer to come. The roles are "system",
  // only as the first, then "user" and "assistant" in turn, "user" last. What was said stays text,
  // whatever it spells. Throws Error where the template refuses the conversation, a content is not
  // UTF-8, or the tokenizer takes what is typed for a token that ends an answer.
  std::vector<TokenId> tokens(std::span<const Message> messages) const;
  // The same of a conversation in which functions are called: `tools` is what OpenAI calls so, an
  // array. It goes through the template in any case. After an "assistant" that calls come the
  // results, as "tool", then "assistant".
  std::vector<TokenId> tokens(std::span<const ToolMessage> messages,
                              std::optional<JsonNode> tools) const;
  // How the template writes calls; None: it does not, or it leaves out the functions, or
  // find_tool_form, which renders probes to see it, was not called.
  ToolForm tool_form() const { return tool_form_; }
  void find_tool_form();

  // The same as text, for what is not ChatML and for tests.
  MarkedText text(std::span<const Message> messages, bool with_opening = true) const;

  // What a model says when its answer is over; its config.json may name more.
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }

  bool is_chatml() const { return is_chatml_; }
  const std::string& name() const {
    return name_;
  }  // "llama3", "chat_template.jinja": for a person

 private:
  explicit ChatFormat(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  void recognise_chatml();
  void find_end_tokens();
  MarkedText render(std::span<const ToolMessage> messages, std::optional<JsonNode> tools,
                    bool with_opening) const;

  const Tokenizer* tokenizer_;
  std::string name_;
  std::shared_ptr<const jinja::Template> template_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;  // "bos_token": "<s>"
  std::tm now_ = {};  // when it was opened: one conversation, one date
  bool is_chatml_ = false;
  std::optional<std::string> own_system_;  // ChatML: the model's system prompt where none is given
  std::vector<TokenId> end_tokens_;
  ToolForm tool_form_ = ToolForm::None;
};

}  // namespace stagecraft
