// --model NAME: a model that ./stage pull brought is found by its name.
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const std::string kGguf = TEST_DATA "/gguf/llama-gqa2.gguf";
const std::string kTinyModel = TEST_DATA "/models/llama-gqa2";

class ModelPath : public ::testing::Test {
 protected:
  ModelPath() { fs::create_directories(models()); }

  fs::path models() const { return home_.path() / "cache/stagecraft/models"; }
  fs::path classroom() const { return home_.path() / "classroom"; }

  static void put(const fs::path& file, const fs::path& folder, const std::string& name = "") {
    fs::create_directories(folder);
    fs::copy(file, folder / (name.empty() ? file.filename().string() : name));
  }
  static void put_folder(const fs::path& folder) {
    put(kTinyModel + "/config.json", folder);
    put(kTinyModel + "/model.safetensors", folder);
  }

  ProgramResult info(const std::string& model, const std::string& environment = "") const {
    const std::string cache = "XDG_CACHE_HOME=" + shell_quoted((home_.path() / "cache").string());
    return run_program({"info", "--model", model}, "",
                       cache + " STAGECRAFT_MODELS= STAGECRAFT_HOME= " + environment);
  }
  // The path that was opened, as ./stage info prints it in its first line.
  std::string found(const std::string& model, const std::string& environment = "") const {
    const ProgramResult result = info(model, environment);
    return result.code == 0 ? result.out.substr(0, result.out.find('\n')) : result.err;
  }

  TemporaryFolder home_;
};

TEST_F(ModelPath, FindsAPulledModelByItsName) {
  put(kGguf, models() / "one");
  put_folder(models() / "ann/two");
  EXPECT_EQ(found("one"), (models() / "one/llama-gqa2.gguf").string());
  EXPECT_EQ(found("ann/two"), (models() / "ann/two").string());
}

TEST_F(ModelPath, EveryCommandFindsIt) {
  put(TEST_DATA "/gguf/whole.gguf", models() / "one");
  const std::string cache = "XDG_CACHE_HOME=" + shell_quoted((home_.path() / "cache").string());
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"story", "the cat", "--max-tokens", "2", "--model", "one"},
           {"chat", "the cat", "--max-tokens", "2", "--model", "one"},
           {"peek", "the cat", "--model", "one"},
           {"tokenize", "--model", "one"},
           {"trace", "--ids", "1", "--out", home_.file("t"), "--model", "one"}}) {
    EXPECT_EQ(run_program(arguments, "the cat", cache).code, 0) << arguments.front();
  }
}

TEST_F(ModelPath, LooksInTheClassroomFirstAndInTheHomeLast) {
  put(kGguf, models() / "one");
  put(kGguf, classroom() / "one");
  put(kGguf, home_.path() / ".cache/stagecraft/models/two");
  const std::string shared = "STAGECRAFT_MODELS=" + shell_quoted(classroom().string());
  EXPECT_EQ(found("one", shared), (classroom() / "one/llama-gqa2.gguf").string());
  EXPECT_EQ(found("one"), (models() / "one/llama-gqa2.gguf").string());
  const std::string home = " HOME=" + shell_quoted(home_.path().string());
  const std::string two = (home_.path() / ".cache/stagecraft/models/two/llama-gqa2.gguf").string();
  EXPECT_EQ(found("two", "XDG_CACHE_HOME=" + home), two);
  EXPECT_EQ(found("two", "XDG_CACHE_HOME=relative" + home), two);  // the standard says: ignore it
}

TEST_F(ModelPath, AModelOfSeveralFilesIsAskedWhich) {
  put(kGguf, models() / "ann/many", "a.gguf");
  put(kGguf, models() / "ann/many", "b.gguf");
  EXPECT_EQ(
      info("ann/many").err,
      "stagecraft: ann/many: expected one model, found 2; name one, such as ann/many:a.gguf\n");
  EXPECT_EQ(found("ann/many:b.gguf"), (models() / "ann/many/b.gguf").string());
}

TEST_F(ModelPath, AFolderIsTheOneFileInItThatIsAModel) {
  const std::filesystem::path folder = home_.path() / "mine";
  put(kGguf, folder, "a.gguf");
  EXPECT_EQ(found(folder.string()), (folder / "a.gguf").string());
  put(kGguf, folder, "b.gguf");
  EXPECT_EQ(info(folder.string()).err, "stagecraft: " + folder.string() +
                                           ": expected one model, found 2; name one, such as " +
                                           folder.string() + "/a.gguf\n");
}

TEST_F(ModelPath, APathThatExistsIsNoName) {
  put(kGguf, models() / "tests");
  const std::string here = "env -C " + shell_quoted(REPOSITORY);
  EXPECT_NE(found("tests", here).find("tests: expected model.safetensors"), std::string::npos);
}

TEST_F(ModelPath, AProgramInTheRepositoryFindsItsModels) {
  const fs::path tree = home_.path() / "tree";
  fs::create_directories(tree / "build/release/src");
  fs::create_directories(tree / "models");
  fs::create_directory_symlink(kTinyModel, tree / "models/story");
  fs::copy(PROGRAM, tree / "build/release/src/stagecraft");
  const auto code_in = [&](const std::string& build) {
    const fs::path program = tree / build / "release/src/stagecraft";
    const std::string command = "STAGECRAFT_HOME= " + shell_quoted(program.string());
    return std::system((command + " trace --ids 1 >/dev/null 2>&1").c_str());
  };
  EXPECT_EQ(code_in("build"), 0);
  fs::rename(tree / "build", tree / "other");
  EXPECT_NE(code_in("other"), 0);
}

TEST_F(ModelPath, WhatIsNotThereIsNamedWithTheCommandThatPullsIt) {
  for (const std::string name : {"qwen3-0.6b", "ann/none", "ann/none:x.gguf"}) {
    const ProgramResult result = info(name);
    EXPECT_EQ(result.code, 1);
    EXPECT_EQ(result.err,
              "stagecraft: " + name +
                  ": no such folder, and no model of that name was pulled: ./stage pull " + name +
                  "\n");
  }
}

TEST_F(ModelPath, ANameThatResemblesAKnownOneIsNamedWithIt) {
  put(kGguf, models() / "ann/little");
  fs::create_directories(home_.path() / "tree/models");
  write_file((home_.path() / "tree/models/registry.json").string(),
             R"({"models": [{"name": "smollm2-135m"}, {"name": "smollm2-360m"}]})");
  const auto message = [&](const std::string& name) {
    const std::string home = "STAGECRAFT_HOME=" + shell_quoted((home_.path() / "tree").string());
    const ProgramResult result = info(name, home);
    EXPECT_EQ(result.code, 1);
    return result.err;
  };
  for (const auto& [name, end] : {std::pair{"smollm2-135", "; did you mean smollm2-135m?"},
                                  {"smolm2-135m", "; did you mean smollm2-135m?"},
                                  {"ann/litle", "; did you mean ann/little?"},
                                  {"smollm2-360m", ": ./stage pull smollm2-360m"},
                                  {"qwen", "; ./stage models lists the names"}}) {
    EXPECT_EQ(message(name),
              fmt::format("stagecraft: {}: no such folder, and no model of that name was "
                          "pulled{}\n",
                          name, end));
  }
}

TEST_F(ModelPath, WhatIsNoNameIsAPath) {
  put(kGguf, home_.path() / "cache/stagecraft/secret");
  for (const std::string path : {"../secret", "a/../../secret", "/secret", "./one", ".one", "-one",
                                 "a/b/c", "one:../secret", "one/", "x.gguf", "a b"}) {
    const ProgramResult result = info(path);
    EXPECT_EQ(result.code, 1) << path;
    EXPECT_EQ(result.err.find("./stage pull"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(": no such f"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace stagecraft
