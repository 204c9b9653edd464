// The gate of stage 5.1: all 65,536 bit patterns of both 16-bit formats.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "course/judge/messages.h"
#include "tests/gates/half_format.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

constexpr std::size_t kWords = 65536;

// The conversion to 32 bits is exact, so there is one right answer, including -0. Any NaN equals
// NaN.
bool is_right(double expected, float got) {
  if (std::isnan(expected)) return std::isnan(got) && !is_untouched(got);
  return expected == static_cast<double>(got) && std::signbit(expected) == std::signbit(got);
}

// expected: the values of these words.
std::string problem_with_words(const HalfFormat& format, const std::vector<float>& words,
                               const std::vector<double>& expected, const std::vector<float>& got) {
  if (got.size() != words.size()) return say("no_answer", "out");
  if (std::ranges::equal(expected, got, is_right)) return {};
  std::map<std::string, std::pair<std::size_t, std::size_t>> kinds;  // wrong, all
  std::size_t wrong = 0;
  std::size_t untouched = 0;
  std::size_t shown = words.size();
  for (std::size_t i = words.size(); i-- > 0;) {
    const auto word = static_cast<unsigned>(words[i]);
    auto& [wrong_of_kind, all_of_kind] = kinds[format.kind(word)];
    ++all_of_kind;
    if (is_right(expected[i], got[i])) continue;
    ++wrong_of_kind;
    ++wrong;
    untouched += is_untouched(got[i]) ? 1 : 0;
    const bool known = shown < words.size() &&
                       std::ranges::count(format.familiar, static_cast<unsigned>(words[shown])) > 0;
    if (!known || std::ranges::count(format.familiar, word) > 0) shown = i;
  }
  const auto word = static_cast<unsigned>(words[shown]);
  std::string text = say("word_wrong", format.function, fmt::format("{:#06x}", word),
                         format.bits(word), fmt::format("{:.7g}", expected[shown]),
                         is_untouched(got[shown]) ? "-" : fmt::format("{:.7g}", got[shown]));
  text += "\n  " + say("words_wrong", wrong, words.size());
  for (const auto& [kind, counts] : kinds) {
    if (counts.first != 0) text += "\n    " + say(kind, counts.first, counts.second);
  }
  if (untouched != 0) text += "\n  " + say("untouched", untouched);
  return text;
}

bool judge_words(const HalfFormat& format, const std::string& name,
                 const std::vector<float>& words) {
  Case one;
  one.name = name;
  one.request.function = format.function;
  one.request.inputs = {{"bits", {{words.size()}, words}}};
  one.request.calls = 2;
  Expected& expected = one.expected["out"];
  expected.shape = {words.size()};
  for (const float word : words)
    expected.values.push_back(format.value(static_cast<unsigned>(word)));
  expected.allowed.assign(words.size(), 0.0);
  return judge_by(one, [=, values = expected.values](const Outcome& outcome) -> std::string {
    const std::string broken = broken_rule(outcome);
    if (!broken.empty()) return broken;
    for (std::size_t call = 1; call <= 2; ++call) {
      const auto got = outcome.response.outputs.find(output_name("out", call));
      if (got == outcome.response.outputs.end()) return say("no_answer", "out");
      const std::string problem = problem_with_words(format, words, values, got->second.values);
      if (!problem.empty()) return call == 1 ? problem : say("same_twice") + "\n  " + problem;
    }
    return {};
  });
}

void judge_format(const HalfFormat& format) {
  std::vector<float> all;
  for (std::size_t word = 0; word < kWords; ++word) all.push_back(static_cast<float>(word));
  if (!judge_words(format, "all 65,536 words", all)) return;
  Inputs inputs;
  for (const std::size_t n : {inputs.size(3, 60), kWords + inputs.size(100, 400)}) {
    std::vector<float> some(n);
    for (float& word : some) word = static_cast<float>(inputs.size(0, kWords - 1));
    if (!judge_words(format, fmt::format("{} words", n), some)) return;
  }
  if (!judge_words(format, "no words", {})) return;
  const std::size_t sizes[] = {5, 300, 6'007};  // all bit patterns are asked above
  judge_together([&](std::size_t size) {
    Case one;
    one.request.function = format.function;
    Tensor& bits = one.request.inputs["bits"];
    Expected& expected = one.expected["out"];
    bits.shape = expected.shape = {sizes[size]};
    for (std::size_t i = 0; i < sizes[size]; ++i) {
      const std::size_t word = inputs.size(0, kWords - 1);
      bits.values.push_back(static_cast<float>(word));
      expected.values.push_back(format.value(static_cast<unsigned>(word)));
    }
    expected.allowed.assign(sizes[size], 0.0);
    return one;
  });
}

TEST(Bf16ToF32, GivesEveryWordItsValue) { judge_format(kBf16); }

TEST(F16ToF32, GivesEveryWordItsValue) { judge_format(kF16); }

}  // namespace
}  // namespace stagecraft::stages
