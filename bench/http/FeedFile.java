import ai.vespa.feed.client.FeedClient;
import ai.vespa.feed.client.FeedClientBuilder;
import ai.vespa.feed.client.FeedException;
import ai.vespa.feed.client.JsonFeeder;
import ai.vespa.feed.client.Result;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

/** Feeds a file of JSON lines with vespa-feed-client as it comes, twice: arguments ADDRESS FILE. Prints the rate of each time. */
public class FeedFile {
    private static void feed(JsonFeeder feeder, Path file, String name) throws Exception {
        AtomicLong applied = new AtomicLong();
        AtomicLong failed = new AtomicLong();
        long begin = System.nanoTime();
        try (InputStream lines = Files.newInputStream(file)) {
            feeder.feedMany(lines, new JsonFeeder.ResultCallback() {
                @Override
                public void onNextResult(Result result, FeedException error) {
                    if (error == null && result.type() == Result.Type.success) applied.incrementAndGet();
                    else failed.incrementAndGet();
                }
            }).join();
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        System.out.printf("%s fed %d failed %d rate %.0f%n", name, applied.get(), failed.get(), applied.get() / seconds);
    }

    public static void main(String[] arguments) throws Exception {
        FeedClient client = FeedClientBuilder.create(URI.create(arguments[0])).build();
        try (JsonFeeder feeder = JsonFeeder.builder(client).build()) {  // Closes the client, too.
            feed(feeder, Path.of(arguments[1]), "first");
            feed(feeder, Path.of(arguments[1]), "second");
        }
    }
}
