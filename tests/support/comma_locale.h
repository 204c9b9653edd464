#pragma once

#include <clocale>
#include <cstdlib>

#include "tests/support/temporary_folder.h"

namespace stagecraft {

// While it lives, the C library writes 0,5 for 0.5, as in a host program that speaks German.
class CommaLocale {
 public:
  CommaLocale() {
    const std::string source =
        folder_.write("source",
                      "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
                      "END LC_NUMERIC\n");
    const std::string make = "localedef -c -i " + source + " " + folder_.file("comma");
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    // Its status is not 0, because it warns of missing categories.
    if (std::system((make + " >/dev/null 2>&1").c_str()) != -1) std::setlocale(LC_NUMERIC, "comma");
    ::unsetenv("LOCPATH");
  }
  ~CommaLocale() { std::setlocale(LC_NUMERIC, "C"); }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  // False where no program called localedef makes such a locale.
  bool is_set() const { return std::localeconv()->decimal_point[0] == ','; }

 private:
  TemporaryFolder folder_;
};

}  // namespace stagecraft
