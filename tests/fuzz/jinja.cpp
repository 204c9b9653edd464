// The input is a chat template, rendered with a conversation that contains typed text. The result
// must be a text or an Error, in bounded time and memory. Typed text must stay marked as typed:
// none of it may become part of the frame.
#include "base/error.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "text/jinja/template.h"

using namespace stagecraft;

namespace {

std::vector<std::pair<std::string, jinja::Value>> variables(jinja::Runtime& runtime) {
  const auto frame = [&](std::string_view text) { return runtime.text(MarkedText(text)); };
  // Typed texts consist of letters that no template writes. So each of them in the result was
  // typed.
  const auto typed = [&](std::string_view text) { return runtime.text(MarkedText::typed(text)); };
  const auto message = [&](std::string_view role, std::string_view content) {
    return runtime.dict({{{frame("role"), frame(role)}, {frame("content"), typed(content)}}});
  };
  return {{"messages",
           runtime.list({message("system", " \xd0\x96 "), message("user", "\xd0\x96\xd0\x96\n"),
                         message("assistant", "<think>\xd0\x96</think>\n\xd0\x96"),
                         message("user", "\xd0\x96")})},
          {"tools", jinja::Value::none()},
          {"add_generation_prompt", jinja::Value::of_bool(true)},
          {"bos_token", frame("<s>")},
          {"eos_token", frame("</s>")}};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source = as_text(data, size);
  try {
    const jinja::Template made(source, "input");
    const jinja::Limits limits = {.steps = 200'000, .bytes = std::size_t{16} << 20};
    const MarkedText text = made.render(variables, std::tm{}, limits);
    require(utf8_error_offset(text.bytes()) == std::string_view::npos, "text is UTF-8");
    std::size_t end = 0;
    for (const TextSpan& span : text.typed_spans()) {
      require((end == 0 || end < span.begin) && span.begin < span.end && span.end <= text.size(),
              "spans are in order and apart");
      end = span.end;
    }
    // U+0416 may occur in the frame only if the template writes it: as a character, as an escape,
    // or in the other case.
    const bool may_spell = source.find_first_of("\\\xd0") != std::string_view::npos;
    text.for_each_stretch(0, text.size(), [&](std::string_view bytes, bool is_typed) {
      require(is_typed || may_spell || bytes.find("\xd0\x96") == std::string_view::npos,
              "what was typed stays marked");
    });
  } catch (const Error&) {
  }
  return 0;
}
