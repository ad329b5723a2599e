import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.GZIPInputStream;

import org.apache.any23.Any23;
import org.apache.any23.source.DocumentSource;
import org.apache.any23.writer.NTriplesWriter;

/**
 * A response record of a WARC as any23 takes a document: its body, its URL and its type. Nothing is fetched.
 *
 * The program prints the triples of each record of a WARC, after a line "# URL". Only extractors that need no network
 * run: any23 reads no JSON-LD without one.
 */
public final class WARCDocumentSource implements DocumentSource {
    private static final String[] EXTRACTORS = {"html-head-title", "html-head-meta", "html-microdata"};

    private final String url;
    private final String type;
    private final byte[] body;

    private WARCDocumentSource(String url, String type, byte[] body) {
        this.url = url;
        this.type = type;
        this.body = body;
    }

    /** The next response of HTML in a WARC, not compressed; null at its end. */
    static WARCDocumentSource next(DataInputStream warc) throws IOException {
        for (String version = line(warc); version != null; version = line(warc)) {
            if (version.isEmpty()) {
                continue;
            }
            if (!version.startsWith("WARC/1.")) {
                throw new IOException("not the version of a record: " + version);
            }
            Map<String, String> head = fields(warc);
            byte[] block = new byte[Integer.parseInt(head.get("content-length"))];
            warc.readFully(block);
            if (head.get("warc-type").equals("response")) {
                DataInputStream http = new DataInputStream(new ByteArrayInputStream(block));
                String status = line(http);
                Map<String, String> answer = fields(http);
                String type = answer.getOrDefault("content-type", "");
                if (status != null && status.contains(" 200") && type.startsWith("text/html")) {
                    return new WARCDocumentSource(head.get("warc-target-uri"), type, http.readAllBytes());
                }
            }
        }
        return null;
    }

    private static Map<String, String> fields(DataInputStream from) throws IOException {
        Map<String, String> found = new TreeMap<>();
        for (String line = line(from); line != null && !line.isEmpty(); line = line(from)) {
            int colon = line.indexOf(':');
            found.put(line.substring(0, colon).toLowerCase(), line.substring(colon + 1).strip());
        }
        return found;
    }

    /** A line without its end; null at the end. */
    private static String line(DataInputStream from) throws IOException {
        ByteArrayOutputStream held = new ByteArrayOutputStream();
        for (int one = from.read(); one != '\n'; one = from.read()) {
            if (one < 0) {
                return held.size() == 0 ? null : held.toString(StandardCharsets.UTF_8);
            }
            held.write(one);
        }
        return held.toString(StandardCharsets.UTF_8).strip();
    }

    @Override
    public InputStream openInputStream() {
        return new ByteArrayInputStream(body);
    }

    @Override
    public long getContentLength() {
        return body.length;
    }

    @Override
    public String getDocumentIRI() {
        return url;
    }

    @Override
    public String getContentType() {
        return type;
    }

    @Override
    public boolean isLocal() {
        return true;
    }

    public static void main(String[] words) throws Exception {
        Any23 any23 = new Any23(EXTRACTORS);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try (DataInputStream warc = new DataInputStream(
                new BufferedInputStream(new GZIPInputStream(new FileInputStream(words[0]))))) {
            for (WARCDocumentSource one = next(warc); one != null; one = next(warc)) {
                ByteArrayOutputStream triples = new ByteArrayOutputStream();
                try (NTriplesWriter writer = new NTriplesWriter(triples)) {
                    any23.extract(one, writer);
                }
                out.println("# " + one.getDocumentIRI());
                out.print(triples.toString(StandardCharsets.UTF_8));
            }
        }
    }
}
