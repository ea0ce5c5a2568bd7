import ai.vespa.feed.client.DocumentId;
import ai.vespa.feed.client.FeedClient;
import ai.vespa.feed.client.FeedClientBuilder;
import ai.vespa.feed.client.OperationParameters;
import ai.vespa.feed.client.Result;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Drives vespa-feed-client, with the address of a gateway as argument. Ends with an error if an answer is another than expected. */
public class Feed {
    static void check(boolean is, String what) {
        if (!is) throw new IllegalStateException(what);
    }

    static DocumentId id(String user) { return DocumentId.of("java", "item", user); }

    static Result.Type type(CompletableFuture<Result> result) throws Exception { return result.get().type(); }

    static void calls(FeedClient client) throws Exception {
        OperationParameters plain = OperationParameters.empty();
        check(type(client.put(id("a/b c+d ø"), "{\"fields\":{\"sold\":1}}", plain)) == Result.Type.success, "put");
        check(type(client.update(id("a/b c+d ø"), "{\"fields\":{\"sold\":{\"increment\":2}}}", plain)) == Result.Type.success, "update");
        check(type(client.update(id("made"), "{\"fields\":{\"sold\":{\"assign\":2}}}", plain.createIfNonExistent(true)))
                  == Result.Type.success, "create");
        check(type(client.put(id("a/b c+d ø"), "{\"fields\":{\"sold\":9}}", plain.testAndSetCondition("item.sold == 1")))
                  == Result.Type.conditionNotMet, "condition");
        check(type(client.put(id("a/b c+d ø"), "{\"fields\":{\"sold\":4}}", plain.testAndSetCondition("item.sold == 3")))
                  == Result.Type.success, "condition that holds");
        check(type(client.remove(id("made"), plain)) == Result.Type.success, "remove");
        check(type(client.remove(id("made"), plain)) == Result.Type.success, "remove of a missing document");
        check(type(client.remove(id("made"), plain.testAndSetCondition("item.sold == 1"))) == Result.Type.conditionNotMet,
              "conditional remove of a missing document");
        boolean isRefused = false;
        try {
            client.put(id("bad"), "{\"fields\":{\"absent\":1}}", plain).get();
        } catch (java.util.concurrent.ExecutionException error) {
            isRefused = error.getMessage().contains("400");
        }
        check(isRefused, "an unknown field");
    }

    static void feed(FeedClient client, int count) throws Exception {
        System.out.println("begun");
        String title = "x".repeat(100);
        List<CompletableFuture<Result>> results = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String json = "{\"fields\":{\"sold\":" + i + ",\"title\":\"" + title + "\"}}";
            results.add(client.put(DocumentId.of("feed", "item", Integer.toString(i)), json, OperationParameters.empty()));
        }
        for (CompletableFuture<Result> result : results) check(type(result) == Result.Type.success, "feed");
        System.out.println("failed none");
    }

    /** Raises each document by one if it has its first value. A refused condition is the answer to a repeated write that was applied. */
    static void raise(FeedClient client, int count) throws Exception {
        List<CompletableFuture<Result>> results = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            OperationParameters condition = OperationParameters.empty().testAndSetCondition("item.sold == " + i);
            results.add(client.update(DocumentId.of("feed", "item", Integer.toString(i)), "{\"fields\":{\"sold\":{\"increment\":1}}}", condition));
        }
        int refused = 0;
        for (CompletableFuture<Result> result : results) if (type(result) == Result.Type.conditionNotMet) refused++;
        System.out.println("refused " + refused);
    }

    public static void main(String[] arguments) throws Exception {
        try (FeedClient client = FeedClientBuilder.create(URI.create(arguments[0])).setConnectionsPerEndpoint(2).build()) {
            if (arguments[1].equals("calls")) calls(client);
            else if (arguments[1].equals("raise")) raise(client, Integer.parseInt(arguments[2]));
            else feed(client, Integer.parseInt(arguments[2]));
        }
    }
}
