#include "text/builtin_chat_templates.h"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr std::string_view kChatMl = R"({%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

// The system prompt is part of the first question. Each exchange has its own <s> and </s>.
constexpr std::string_view kLlama2 = R"({%- set ns = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' %}
{%- elif message.role == 'user' %}
{{- bos_token + '[INST] ' + (ns.system + message.content) | trim + ' [/INST]' }}
{%- set ns.system = '' %}
{%- else %}
{{- ' ' + message.content | trim + ' ' + eos_token }}
{%- endif %}
{%- endfor %})";

constexpr std::string_view kLlama3 = R"({{- bos_token }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' }}
{{- message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})";

constexpr std::string_view kZephyr = R"({%- for message in messages %}
{{- '<|' + message.role + '|>\n' + message.content + eos_token + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})";

// The system prompt stands before the last question.
constexpr std::string_view kMistral = R"({{- bos_token }}
{%- for message in messages if message.role != 'system' %}
{%- if message.role == 'user' %}
{{- '[INST] ' }}
{%- if loop.last and messages[0].role == 'system' %}{{ messages[0].content + '\n\n' }}{% endif %}
{{- message.content + '[/INST]' }}
{%- else %}
{{- ' ' + message.content + eos_token }}
{%- endif %}
{%- endfor %})";

// Gemma has no system role: the system prompt is put before the first question.
constexpr std::string_view kGemma = R"({{- bos_token }}
{%- set ns = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set ns.system = message.content | trim + '\n\n' %}
{%- else %}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' }}
{{- ns.system + message.content | trim + '<end_of_turn>\n' }}
{%- set ns.system = '' %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %})";

constexpr std::string_view kPhi3 = R"({%- for message in messages %}
{{- '<|' + message.role + '|>\n' + message.content + '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %})";

// In the order of guess_chat_template(): phi3 also has the tokens of zephyr.
constexpr BuiltinChatTemplate kTemplates[] = {
    {"chatml", kChatMl, "", "<|im_end|>", {"<|im_start|>", "<|im_end|>"}},
    {"llama3",
     kLlama3,
     "<|begin_of_text|>",
     "<|eot_id|>",
     {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
    {"gemma", kGemma, "<bos>", "<eos>", {"<start_of_turn>", "<end_of_turn>"}},
    {"phi3", kPhi3, "<s>", "<|endoftext|>", {"<|user|>", "<|assistant|>", "<|end|>"}},
    {"zephyr", kZephyr, "<s>", "</s>", {"<|user|>", "<|assistant|>"}},
    {"mistral", kMistral, "<s>", "</s>", {"[INST]", "[/INST]"}},
    {"llama2", kLlama2, "<s>", "</s>", {}},
};

}  // namespace

std::string builtin_chat_template_names() {
  std::string names;
  for (const BuiltinChatTemplate& one : kTemplates) {
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  return names;
}

const BuiltinChatTemplate* find_builtin_chat_template(std::string_view name) {
  const auto* const found = std::ranges::find(kTemplates, name, &BuiltinChatTemplate::name);
  return found == std::end(kTemplates) ? nullptr : found;
}

const BuiltinChatTemplate* guess_chat_template(const Tokenizer& tokenizer) {
  const auto* const found = std::ranges::find_if(kTemplates, [&](const BuiltinChatTemplate& one) {
    return !one.tokens[0].empty() && std::ranges::all_of(one.tokens, [&](std::string_view token) {
      return token.empty() || tokenizer.id_of(token).has_value();
    });
  });
  return found == std::end(kTemplates) ? nullptr : found;
}

}  // namespace stagecraft
