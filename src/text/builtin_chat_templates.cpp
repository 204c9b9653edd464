#include "text/builtin_chat_templates.h"

#include <algorithm>
#include <array>

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

constexpr BuiltinChatTemplate kTemplates[] = {
    {"chatml", kChatMl, "", "<|im_end|>"},
    {"llama2", kLlama2, "<s>", "</s>"},
    {"llama3", kLlama3, "<|begin_of_text|>", "<|eot_id|>"},
    {"zephyr", kZephyr, "<s>", "</s>"},
    {"mistral", kMistral, "<s>", "</s>"},
    {"gemma", kGemma, "<bos>", "<eos>"},
    {"phi3", kPhi3, "<s>", "<|endoftext|>"},
};

}  // namespace

std::span<const BuiltinChatTemplate> builtin_chat_templates() { return kTemplates; }

const BuiltinChatTemplate* find_builtin_chat_template(std::string_view name) {
  const auto* const found = std::ranges::find(kTemplates, name, &BuiltinChatTemplate::name);
  return found == std::end(kTemplates) ? nullptr : found;
}

const BuiltinChatTemplate* guess_chat_template(const Tokenizer& tokenizer) {
  struct Signature {
    std::string_view name;
    std::array<std::string_view, 3> tokens;
  };
  constexpr Signature kSignatures[] = {
      {"chatml", {"<|im_start|>", "<|im_end|>", ""}},
      {"llama3", {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
      {"gemma", {"<start_of_turn>", "<end_of_turn>", ""}},
      {"phi3", {"<|user|>", "<|assistant|>", "<|end|>"}},
      {"zephyr", {"<|user|>", "<|assistant|>", ""}},
      {"mistral", {"[INST]", "[/INST]", ""}},
  };
  for (const auto& [name, tokens] : kSignatures) {
    if (std::ranges::all_of(tokens, [&](std::string_view token) {
          return token.empty() || tokenizer.id_of(token).has_value();
        })) {
      return find_builtin_chat_template(name);
    }
  }
  return nullptr;
}

}  // namespace stagecraft
