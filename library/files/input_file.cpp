#include "fjord/library/detail/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace fjord {

void InputFile::Close::operator()(gzFile_s* file) const { gzclose(file); }

Result<std::unique_ptr<InputFile>> InputFile::open(const std::string& path) {
  const bool standard = path == "-";
  const std::string name = standard ? "<stdin>" : path;
  const auto failed = [&](int error) {
    return Status(error == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
                  fmt::format("{}: {}", name, std::strerror(error)));
  };
  const int descriptor = standard ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return failed(errno);
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || S_ISDIR(info.st_mode)) {
    const int error = S_ISDIR(info.st_mode) ? EISDIR : errno;
    ::close(descriptor);
    return failed(error);
  }
  gzFile file = gzdopen(descriptor, "rb");
  if (file == nullptr) {
    ::close(descriptor);
    return failed(ENOMEM);
  }
  gzbuffer(file, 256 * 1024);
  const std::uint64_t size = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  return std::unique_ptr<InputFile>(new InputFile(name, file, size));
}

Result<std::size_t> InputFile::read(std::span<char> into) {
  const int got = gzread(file_.get(), into.data(), static_cast<unsigned>(std::min<std::size_t>(into.size(), 1U << 30)));
  int code = Z_OK;
  const char* message = gzerror(file_.get(), &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
    if (code == Z_ERRNO) message = std::strerror(errno);
    if (code == Z_BUF_ERROR) message = "the gzip file is cut off";
    return Status(StatusCode::IoError, fmt::format("cannot be read on: {}", message));
  }
  return static_cast<std::size_t>(got);
}

Result<std::string> InputFile::read_all(std::size_t bytes_max) {
  std::string all;
  char buffer[64 * 1024];
  while (true) {
    FJORD_TRY_ASSIGN(const std::size_t got, read(buffer));
    if (got == 0) return all;
    all.append(buffer, got);
    if (all.size() > bytes_max) {
      return Status(StatusCode::TooLarge, fmt::format("{}: more than {} bytes", name_, bytes_max));
    }
  }
}

double InputFile::part_read() const {
  if (size_ == 0) return -1;
  return static_cast<double>(gzoffset(file_.get())) / static_cast<double>(size_);
}

}  // namespace fjord
