#include "page_file.h"

#include <algorithm>
#include <span>
#include <utility>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "segment_format.h"

namespace fjord::search {
namespace {

constexpr std::size_t kWriteBytes = 64 * kPageBytes;
constexpr std::size_t kReadAheadBytes = 64 * kPageContent;

std::uint64_t place(std::uint64_t file, std::uint64_t page) { return mix64(file, page); }

}  // namespace

Result<std::unique_ptr<PageFileWriter>> PageFileWriter::create(Env& env, const std::string& path,
                                                               std::uint64_t number) {
  FJORD_TRY_ASSIGN(std::unique_ptr<RandomAccessFile> file, env.create_random_access(path));
  return std::make_unique<PageFileWriter>(std::move(file), number);
}

Status PageFileWriter::append(std::string_view bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kPageContent - page_.size());
    page_ += bytes.substr(0, part);
    bytes.remove_prefix(part);
    if (page_.size() == kPageContent) end_page();
    if (pages_.size() >= kWriteBytes) FJORD_TRY(write_pages());
  }
  return Status::ok();
}

void PageFileWriter::end_page() {
  page_.resize(kPageContent, '\0');
  put_fixed(page_, checksum32(page_, place(number_, page_number_++)));
  pages_ += page_;
  page_.clear();
}

Status PageFileWriter::write_pages() {
  FJORD_TRY(file_->write(written_, pages_));
  written_ += pages_.size();
  pages_.clear();
  return Status::ok();
}

Status PageFileWriter::finish() {
  if (!page_.empty()) end_page();
  FJORD_TRY(write_pages());
  FJORD_TRY(file_->sync());
  file_->will_not_need(0, written_);
  return Status::ok();
}

std::uint64_t PageFile::pages(std::uint64_t offset, std::size_t length) {
  return length == 0 ? 0 : (offset + length - 1) / kPageContent - offset / kPageContent + 1;
}

Result<std::string> PageFile::read(std::uint64_t offset, std::size_t length) const {
  const std::uint64_t first = offset / kPageContent;
  const auto count = static_cast<std::size_t>(pages(offset, length));
  const std::size_t bytes = count * kPageBytes;
  const std::unique_ptr<char[]> raw(new char[bytes]);
  FJORD_TRY_ASSIGN(const std::size_t got, file_->read(first * kPageBytes, std::span(raw.get(), bytes)));
  file_->will_not_need(first * kPageBytes, bytes);
  if (got != bytes) return Status(StatusCode::Corruption, "a segment of the keyword index is too short");
  std::string content;
  content.reserve(count * kPageContent);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view page(raw.get() + i * kPageBytes, kPageContent);
    if (checksum32(page, place(number_, first + i)) != load_fixed<std::uint32_t>(page.data() + kPageContent)) {
      return Status(StatusCode::Corruption, "a page of a segment of the keyword index does not verify");
    }
    content += page;
  }
  content.erase(0, static_cast<std::size_t>(offset - first * kPageContent));
  content.resize(length);
  return content;
}

Result<std::string_view> PageStream::read(std::uint64_t offset, std::size_t length) {
  if (offset < begin_ || offset + length > begin_ + content_.size()) {
    const std::uint64_t left = end_ - std::min(offset, end_);
    const std::size_t wanted = std::max<std::size_t>(length, std::min<std::uint64_t>(left, kReadAheadBytes));
    FJORD_TRY_ASSIGN(content_, file_->read(offset, wanted));
    begin_ = offset;
  }
  return std::string_view(content_).substr(static_cast<std::size_t>(offset - begin_), length);
}

}  // namespace fjord::search
