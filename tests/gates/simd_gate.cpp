// The gate of stage 9: first correctness, then speed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "course/judge/messages.h"
#include "course/judge/speed.h"
#include "course/worker/chain.h"
#include "operators/matmul_transb.h"
#include "tests/gates/exact.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

Case packed_case(const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor c = filled({a.rows(), b.rows()}, 0.0f);
  return {name,
          {"matmul_packed", {{"a", a}, {"b", b}}, {}},
          {{"c", exact_matmul_transb(1.0, exact(a), b, 0.0, c)}}};
}

std::string sizes(std::size_t m, std::size_t n, std::size_t k) {
  return fmt::format("m = {}, n = {}, k = {}", m, n, k);
}

Case packed_case(Inputs& inputs, std::size_t m, std::size_t n, std::size_t k) {
  return packed_case(sizes(m, n, k), inputs.tensor({m, k}), inputs.tensor({n, k}));
}

// ---- right --------------------------------------------------------------------------------------

TEST(MatmulPacked, EqualsPyTorch) {
  if (skips_for_lack_of_instructions()) return;
  for (Case one : dumped_cases("matmul_transb")) {
    if (one.request.scalars.at("alpha") != 1.0 || one.request.scalars.at("beta") != 0.0) continue;
    const auto& inputs = one.request.inputs;
    const Tensor& a = inputs.at("a");
    const Tensor& b = inputs.at("b");
    Case question = packed_case(sizes(a.shape[0], b.shape[0], a.shape[1]), a, b);
    question.expected = one.expected;
    if (!judge(question)) return;
  }
}

// Sizes shorter than, equal to, and not multiples of the usual vectors, panels and tiles.
TEST(MatmulPacked, EqualsTheReferenceAtSizesOfEveryKind) {
  if (skips_for_lack_of_instructions()) return;
  Inputs inputs;
  const std::size_t kSizes[][3] = {
      {6, 16, 32}, {12, 32, 64}, {24, 64, 128}, {1, 16, 8},  {1, 64, 32}, {1, 1, 1},  {7, 16, 32},
      {5, 16, 32}, {12, 17, 32}, {12, 15, 32},  {12, 32, 9}, {12, 32, 7}, {2, 3, 65}, {1, 130, 50}};
  for (const auto& [m, n, k] : kSizes) {
    if (!judge(packed_case(inputs, m, n, k))) return;
  }
  for (int i = 0; i < 4; ++i) {
    Case one = packed_case(inputs, inputs.size(1, 20), inputs.size(1, 70), inputs.size(1, 100));
    one.request.calls = 2;
    if (!judge(one)) return;
  }
}

TEST(MatmulPacked, GoesFromRowToRowByTheStride) {
  if (skips_for_lack_of_instructions()) return;
  Inputs inputs;
  for (const std::size_t rows : {std::size_t{1}, std::size_t{13}}) {
    Case one = packed_case(inputs, rows, 37, 41);
    one.name = "rows with gaps between them, " + one.name;
    one.request.gap = 3;
    if (!judge(one)) return;
  }
}

TEST(MatmulPacked, TakesThousandsOfRowsColumnsAndProducts) {
  if (skips_for_lack_of_instructions()) return;
  Inputs inputs;
  const std::size_t kSizes[][3] = {{2, 19, 9001}, {3001, 17, 5},   {1, 5003, 40},
                                   {2, 3001, 9},  {151, 263, 301}, {1, 65'601, 1}};
  for (const auto& [m, n, k] : kSizes) {
    if (!judge(packed_case(inputs, m, n, k))) return;
  }
  Case one = packed_case(inputs, 7, 37, 41);
  one.name = "rows with large gaps between them, " + one.name;
  one.request.gap = 4003;
  judge(one);
}

TEST(MatmulPacked, KeepsNothing) {
  if (skips_for_lack_of_instructions()) return;
  Inputs inputs;
  const std::size_t kSizes[][3] = {{1, 3, 7}, {6, 40, 65}, {30, 90, 301}};
  judge_together([&](std::size_t size) {
    const auto& [m, n, k] = kSizes[size];
    return packed_case(inputs, m, n, k);
  });
}

TEST(MatmulPacked, AllowsEverySizeToBeZero) {
  if (skips_for_lack_of_instructions()) return;
  Inputs inputs;
  if (!judge(packed_case(inputs, 0, 3, 4))) return;
  judge(packed_case(inputs, 3, 0, 4));
  judge(packed_case(inputs, 3, 4, 0));
}

// Several products one after the other, with the activations in the same memory each time.
TEST(MatmulPacked, AnswersForTheNumbersThatAreThereNow) {
  if (skips_for_lack_of_instructions()) return;
  Inputs inputs;
  constexpr std::size_t kWidth = 24;
  for (const auto& [rows, steps] : {std::pair<std::size_t, std::size_t>{1, 150}, {6, 9}}) {
    const Tensor b = inputs.tensor({kWidth, kWidth}, 0.2f);
    const Tensor noise = inputs.tensor({kNoise});
    Matrix<float> c(rows, kWidth);
    Matrix<float> a(rows, kWidth);
    Expected last;
    Expected sum{{rows, kWidth}, std::vector<double>(rows * kWidth, 0.0), {}};
    sum.allowed = sum.values;
    for (std::size_t step = 0; step < steps; ++step) {
      next_input(noise.values, step, c.view(), a.view());
      const Tensor input{{rows, kWidth}, {a.data(), a.data() + rows * kWidth}};
      last = exact_matmul_transb(1.0, exact(input), b, 0.0, filled({rows, kWidth}, 0.0f));
      for (std::size_t i = 0; i < last.values.size(); ++i) {
        c.data()[i] = static_cast<float>(last.values[i]);
        last.allowed[i] *= 2.0;  // adds the error of the previous answer
        sum.values[i] += last.values[i];
        sum.allowed[i] += last.allowed[i] + kUlp * std::fabs(sum.values[i]);
      }
    }
    const auto scalar = [](std::size_t value) { return static_cast<double>(value); };
    if (!judge({fmt::format("{} calls, m = {}", steps, rows),
                {"matmul_packed, again and again",
                 {{"b", b}, {"noise", noise}},
                 {{"rows", scalar(rows)}, {"steps", scalar(steps)}}},
                {{"last", last}, {"sum", sum}}})) {
      return;
    }
  }
}

// ---- fast ---------------------------------------------------------------------------------------

struct Size {
  std::size_t rows;
  std::size_t width;  // B is [width, width]
  std::size_t steps;
  std::size_t plain_steps;  // for the plain loop: fewer, because it is slow
  std::vector<int> bands;   // steps of the handout; the last band, step 4, is our answer
};
// The size differs from one run to the next, so that no code can be fast for this size alone. All
// are multiples of the usual tiles, also of 4 panels: what remains is not measured.
constexpr std::size_t kMultiple = 64;
const Size& one_row() {
  static const Size size = [] {
    constexpr std::size_t kProducts = 900'000'000;
    const std::size_t width = kMultiple * Inputs().size(2, 3);
    const std::size_t steps = kProducts / (width * width);
    return Size{1, width, steps, steps / 8, {1, 2}};  // tiles, step 3, do not help a single row
  }();
  return size;
}
const Size& many_rows() {
  static const Size size = [] {
    Inputs inputs;
    const std::size_t rows = kMultiple * inputs.size(3, 5);
    return Size{rows, kMultiple * inputs.size(7, 9), 24, 3, {1, 2, 3}};
  }();
  return size;
}

double norm(std::span<const float> values) {
  double squares = 0.0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// The chain computed with our matmul_transb. The error of a sum of k products, in any order, grows
// like a random walk of k steps; each step is a rounding of the largest sum that these rows can
// have. Eight such walks are allowed, and over all steps of the chain a random walk of these.
// Half-precision numbers would be ten times as far off.
std::string problem_with_chain(const Size& size, const Tensor& b, const Tensor& noise,
                               const Response& response) {
  const MatrixView<const float> weight(b.values.data(), size.width, size.width);
  Matrix<float> a(size.rows, size.width);
  Matrix<float> c(size.rows, size.width);
  std::vector<double> sums(size.rows * size.width, 0.0);
  for (std::size_t step = 0; step < size.steps; ++step) {
    next_input(noise.values, step, c.view(), a.view());
    matmul_transb(1.0f, std::as_const(a).view(), weight, 0.0f, c.view());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(c.data()[i]);
  }
  Expected last{{size.rows, size.width}, {c.data(), c.data() + sums.size()}, {}};
  Expected sum{{size.rows, size.width}, sums, {}};
  std::vector<double> norms;
  for (std::size_t n = 0; n < size.width; ++n) norms.push_back(norm(weight.row(n)));
  const double walk = 8.0 * std::sqrt(static_cast<double>(size.width)) * kUlp;
  for (std::size_t r = 0; r < size.rows; ++r) {
    const double length = norm(std::as_const(a).view().row(r));
    for (std::size_t n = 0; n < size.width; ++n) {
      const double allowed = walk * length * norms[n];
      last.allowed.push_back(allowed);
      sum.allowed.push_back(std::sqrt(static_cast<double>(size.steps)) * allowed +
                            2 * kUlp * std::fabs(sums[r * size.width + n]));
    }
  }
  for (const auto& [name, expected] : {std::pair{"last", last}, std::pair{"sum", sum}}) {
    const auto got = response.outputs.find(name);
    if (got == response.outputs.end()) return say("no_answer", name);
    if (!agrees(expected, got->second)) {
      return diagnose("matmul_packed", name, expected, got->second);
    }
  }
  return {};
}

Race race(const Size& size) {
  Inputs inputs;
  const Tensor b =
      inputs.tensor({size.width, size.width}, 1.0f / std::sqrt(static_cast<float>(size.width)));
  const Tensor noise = inputs.tensor({kNoise});
  const auto request = [&](const std::string& function, std::size_t steps) {
    return Request{
        function,
        {{"b", b}, {"noise", noise}},
        {{"rows", static_cast<double>(size.rows)}, {"steps", static_cast<double>(steps)}}};
  };
  const double product = 2.0 * static_cast<double>(size.rows * size.width * size.width);
  const auto work = [&](const std::string& function, std::size_t steps) {
    return Work{request(function, steps), request("nothing, again and again", steps),
                product * static_cast<double>(steps)};
  };
  const Work mine = work("matmul_packed, again and again", size.steps);
  std::map<int, Request> steps;
  for (const int step : size.bands) {
    steps[step] = request(fmt::format("step {} of simd, again and again", step), size.steps);
  }
  steps[4] = mine.request;
  return {mine,
          [=](const Response& response) { return problem_with_chain(size, b, noise, response); }, 0,
          work("step 0 of simd, again and again", size.plain_steps), steps};
}

void judge_one_row(std::size_t band) {
  judge_speed(
      say("speed_one_row", one_row().width), [] { return race(one_row()); }, band);
}
void judge_many_rows(std::size_t band) {
  judge_speed(
      say("speed_many_rows", many_rows().rows, many_rows().width), [] { return race(many_rows()); },
      band);
}

TEST(SpeedOfOneRow, ReachesTheFirstBand) { judge_one_row(0); }
TEST(SpeedOfOneRow, ReachesTheSecondBand) { judge_one_row(1); }
TEST(SpeedOfOneRow, ReachesTheLastBand) { judge_one_row(2); }

TEST(SpeedOfManyRows, ReachesTheFirstBand) { judge_many_rows(0); }
TEST(SpeedOfManyRows, ReachesTheSecondBand) { judge_many_rows(1); }
TEST(SpeedOfManyRows, ReachesTheThirdBand) { judge_many_rows(2); }
TEST(SpeedOfManyRows, ReachesTheLastBand) { judge_many_rows(3); }

TEST(MatmulPackedRows, GiveAloneWhatTheyGiveAmongMany) {
  if (skips_for_lack_of_instructions()) return;
  Inputs inputs;
  // The last one: products of many rows are often added up in blocks of k.
  const std::size_t kSizes[][3] = {
      {6, 16, 64}, {12, 64, 200}, {13, 70, 101}, {4, 150, 77}, {67, 3, 1100}};
  for (const auto& [m, n, k] : kSizes) {
    const std::string hint = "\n" + say("rows_differ_by_fma");
    if (!judge_rows_alone(packed_case(inputs, m, n, k), "c", hint)) return;
  }
}

}  // namespace
}  // namespace stagecraft::stages
