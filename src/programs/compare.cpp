#include <exception>

#include "inspection/trace_file.h"
#include "programs/console.h"
#include "programs/options.h"

namespace stagecraft {
namespace {

constexpr int kDiffers = 1;
constexpr int kCannotCompare = 2;

struct CompareFlags {
  std::string a;
  std::string b;
  Tolerance tolerance;
};

void print_gap(const Gap& gap) {
  fmt::print("A {:.7g}, B {:.7g}: off by {:.2g}, allowed {:.2g}\n", gap.a, gap.b, gap.size(),
             gap.allowed);
}

void print_difference(const TraceComparison& found) {
  const Comparison& result = found.result;
  fmt::print("{} differs first at {}\n  ", found.name, found.first_place);
  print_gap(result.first);
  if (result.worst.index != result.first.index) {
    fmt::print("  worst at {}\n  ", found.worst_place);
    print_gap(result.worst);
  }
  fmt::print("  {} of {} values differ", result.differing, result.count);
  if (result.nan_a + result.nan_b != 0) {
    fmt::print("; NaN: {} in A, {} in B", result.nan_a, result.nan_b);
  }
  if (found.agreeing == 0) {
    fmt::print("; it is the first of {} tensors\n", found.tensors);
  } else {
    fmt::print("; the {} tensors before it agree (of {})\n", found.agreeing, found.tensors);
  }
}

// Prints the result. Returns the exit code.
int print_comparison(const TraceComparison& found) {
  if (found.result.differing != 0) {
    print_difference(found);
    return kDiffers;
  }
  fmt::print("same: {} tensors, {} values; ", found.tensors, found.values);
  if (found.only_in_b != 0) fmt::print("{} more only in B; ", found.only_in_b);
  if (found.nan != 0) fmt::print("{} of them NaN on both sides; ", found.nan);
  if (found.result.worst.size() == 0.0) {
    fmt::print("all equal\n");
  } else {
    fmt::print("the largest difference is {:.2g}, in {} at {}\n", found.result.worst.size(),
               found.name, found.worst_place);
  }
  return 0;
}

void run_compare(const CompareFlags& flags) {
  int code = kCannotCompare;
  try {
    const TraceFile a(flags.a);
    const TraceFile b(flags.b);
    code = print_comparison(compare_traces(a, b, flags.tolerance));
    flush_stdout();
  } catch (const std::exception& error) {  // a full disk, for example: 1 would mean "different"
    print_error(error.what());
    code = kCannotCompare;
  }
  if (code != 0) throw CLI::RuntimeError(code);
}

}  // namespace

void add_compare(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("compare", "Find the first activation in which two traces differ");
  const auto flags = std::make_shared<CompareFlags>();
  command->add_option("A", flags->a, "A trace; its tensors are compared, in their order")
      ->required()
      ->check(not_empty())
      ->type_name("FILE");
  command->add_option("B", flags->b, "The trace to compare it with; may have more tensors")
      ->required()
      ->check(not_empty())
      ->type_name("FILE");
  command
      ->add_option("--rtol", flags->tolerance.relative,
                   "Two numbers count as equal if they differ by at most ATOL + RTOL x the "
                   "largest of both and of the root mean square of their row")
      ->check(in_range({0, 1e30}))
      ->capture_default_str()
      ->type_name("RTOL");
  command->add_option("--atol", flags->tolerance.absolute, "See --rtol")
      ->check(in_range({0, 1e30}))
      ->capture_default_str()
      ->type_name("ATOL");
  command->footer(
      "Example: stagecraft compare mine.safetensors pytorch.safetensors --rtol 1e-4\n"
      "Exit code: 0 the same, 1 different, 2 cannot be compared.");
  command->callback([flags] { run_compare(*flags); });
}

}  // namespace stagecraft
