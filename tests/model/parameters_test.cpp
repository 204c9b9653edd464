#include "model/parameters.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/engines.h"
#include "tests/support/random_model.h"

namespace stagecraft {
namespace {

// Moves every tensor of the file by one byte, by adding a space before them.
void shift_by_a_byte(const std::filesystem::path& path) {
  std::string bytes = read_file(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.insert(sizeof header + header, " ");
  ++header;
  std::memcpy(bytes.data(), &header, sizeof header);
  write_file(path, bytes);
}

bool equal(MatrixView<const float> a, MatrixView<const float> b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::memcmp(a.data(), b.data(), a.rows() * a.cols() * sizeof(float)) == 0;
}

TEST(Parameters, AreViewsOfTheFileWhereItIsF32) {
  const TemporaryFolder folder;
  write_random_model(folder.path());
  const CourseModel model_file(folder.path());
  const Model& model = model_file.model;
  EXPECT_TRUE(model.parameters.converted.empty());
  const StoredTensor& stored = *model_file.checkpoint.find("model.layers.1.mlp.up_proj.weight");
  const MatrixView<const float> up = model.parameters.layers[1].mlp.up.weight;
  EXPECT_EQ(static_cast<const void*>(up.data()), stored.bytes.data());
}

TEST(Parameters, AreCopiesWhereAFilePutsThemAtAnOddByte) {
  const TemporaryFolder folder;
  write_random_model(folder.path());
  const CourseModel model_file(folder.path());
  const Model& model = model_file.model;
  const TemporaryFolder shifted_folder;
  write_random_model(shifted_folder.path());
  shift_by_a_byte(shifted_folder.path() / "model.safetensors");
  const CourseModel shifted_file(shifted_folder.path());
  const Model& shifted = shifted_file.model;
  EXPECT_FALSE(shifted.parameters.converted.empty());
  EXPECT_TRUE(equal(shifted.parameters.embedding, model.parameters.embedding));
  EXPECT_TRUE(equal(shifted.parameters.layers[1].attention.k.weight,
                    model.parameters.layers[1].attention.k.weight));
}

}  // namespace
}  // namespace stagecraft
