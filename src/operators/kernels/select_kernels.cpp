#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "operators/kernels/instruction_sets.h"
#include "operators/kernels/kernels.h"

namespace stagecraft {

// instruction_sets.inc is written by CMake: KERNELS(name, "features") for each line of
// instruction_sets.txt for this kind of processor.
#define KERNELS(isa, features) \
  namespace isa {              \
  extern const Kernels table;  \
  }
#include "instruction_sets.inc"
#undef KERNELS

namespace {

// A table, and the features that it needs: "avx2 fma f16c".
struct Compiled {
  const Kernels* table;
  std::string_view features;
};
constexpr Compiled kCompiled[] = {
#define KERNELS(isa, features) {&isa::table, features},
#include "instruction_sets.inc"
#undef KERNELS
};

const Kernels& select() {
  auto tables = runnable_kernels();
  const char* wanted = std::getenv("STAGECRAFT_ISA");
  if (wanted == nullptr) {
    std::erase_if(tables, [](const Kernels* table) { return is_slower_here(table->name); });
    if (tables.empty()) {
      throw Error(
          "kernels: expected a processor with {}, for which this program was compiled; "
          "'./stage build' compiles one for every processor",
          kCompiled[0].features);
    }
    return *tables.back();
  }
  std::string names;
  for (const Kernels* table : tables) {
    if (std::string_view(wanted) == table->name) return *table;
    names += (names.empty() ? "" : ", ") + std::string(table->name);
  }
  throw Error("STAGECRAFT_ISA: expected an instruction set of this processor ({}), found '{}'",
              names, printable(wanted));
}

}  // namespace

std::vector<const Kernels*> compiled_kernels() {
  std::vector<const Kernels*> tables;
  for (const Compiled& one : kCompiled) tables.push_back(one.table);
  return tables;
}

std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> tables;
  for (const Compiled& one : kCompiled) {
    if (can_run(one.features)) tables.push_back(one.table);
  }
  return tables;
}

const Kernels& kernels() {
  static const Kernels& chosen = select();
  return chosen;
}

}  // namespace stagecraft
