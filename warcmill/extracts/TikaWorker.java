import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.sun.management.OperatingSystemMXBean;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.tika.config.TikaConfig;
import org.apache.tika.exception.WriteLimitReachedException;
import org.apache.tika.io.TikaInputStream;
import org.apache.tika.metadata.Metadata;
import org.apache.tika.metadata.TikaCoreProperties;
import org.apache.tika.parser.AutoDetectParser;
import org.apache.tika.parser.EmptyParser;
import org.apache.tika.parser.ParseContext;
import org.apache.tika.parser.Parser;
import org.apache.tika.sax.BodyContentHandler;
import org.apache.tika.sax.WriteOutContentHandler;

/**
 * Reads office documents by Tika, one after another, and answers as warcmill/launches/text_worker.py does.
 *
 * <p>{@code java -cp tika-app.jar TikaWorker.java CPU WALL MOST}: Java compiles it as it starts. Standard input is a
 * socket, over which the answers go back, too. A document that takes more than CPU seconds of CPU time, or WALL
 * seconds, ends this process; of its text, MOST characters are kept.
 */
public final class TikaWorker {
    // Those of documents alone: none that starts another program, as the one for OCR does, or unpacks any archive.
    private static final String PARSERS =
            "<properties><parsers>"
                    + parser("microsoft.OfficeParser")
                    + parser("microsoft.OldExcelParser")
                    + parser("microsoft.ooxml.OOXMLParser")
                    + parser("microsoft.ooxml.xwpf.ml2006.Word2006MLParser")
                    + parser("microsoft.xml.SpreadsheetMLParser")
                    + parser("microsoft.xml.WordMLParser")
                    + parser("microsoft.rtf.RTFParser")
                    + parser("odf.OpenDocumentParser")
                    + parser("odf.FlatOpenDocumentParser")
                    + parser("epub.EpubParser")
                    + parser("iwork.IWorkPackageParser")
                    + parser("wordperfect.WordPerfectParser")
                    + parser("wordperfect.QuattroProParser")
                    + "</parsers></properties>";
    private static final String NONE = EmptyParser.class.getName();
    private static final Pattern SIZE = Pattern.compile("\"size\": *([0-9]+)");
    private static final int LATE = 10; // seconds after which it ends, if the process that started it has not ended it
    private static final int TICK = 200; // ms

    private final DataInputStream in = new DataInputStream(new FileInputStream(FileDescriptor.in));
    private final DataOutputStream out = new DataOutputStream(new FileOutputStream(FileDescriptor.in));
    private final OperatingSystemMXBean process =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final Parser parser;
    private final long cpu;
    private final long wall;
    private final int most;
    private long cpuAtStart;
    private long wallAtStart;
    private boolean working; // guarded by this, as the two above

    private TikaWorker(long cpu, long wall, int most) throws Exception {
        this.cpu = TimeUnit.SECONDS.toNanos(cpu);
        this.wall = TimeUnit.SECONDS.toNanos(wall + LATE);
        this.most = most;
        byte[] config = PARSERS.getBytes(StandardCharsets.UTF_8);
        parser = new AutoDetectParser(new TikaConfig(new ByteArrayInputStream(config)));
    }

    public static void main(String[] words) throws Exception {
        System.setOut(System.err);
        long cpu = Long.parseLong(words[0]);
        TikaWorker worker = new TikaWorker(cpu, Long.parseLong(words[1]), Integer.parseInt(words[2]));
        Thread watch = new Thread(worker::watch, "watch");
        watch.setDaemon(true);
        watch.start();
        worker.serve();
    }

    private static String parser(String name) {
        return "<parser class=\"org.apache.tika.parser." + name + "\"/>";
    }

    private void serve() throws IOException {
        send("{\"ready\": true}".getBytes(StandardCharsets.UTF_8));
        while (true) {
            byte[] question;
            try {
                question = in.readNBytes(in.readInt());
            } catch (EOFException ended) {
                new File(System.getProperty("java.io.tmpdir")).delete();
                return;
            }
            Matcher size = SIZE.matcher(new String(question, StandardCharsets.UTF_8));
            if (!size.find()) {
                throw new IOException("a question without a size");
            }
            read(in.readNBytes(Integer.parseInt(size.group(1))));
        }
    }

    private void read(byte[] data) throws IOException {
        begin();
        WriteOutContentHandler text = new WriteOutContentHandler(most);
        Metadata about = new Metadata();
        String why = "";
        boolean isCut = false;
        try (TikaInputStream stream = TikaInputStream.get(data, about)) {
            parser.parse(stream, new BodyContentHandler(text), about, context());
        } catch (OutOfMemoryError error) {
            why = "out of memory";
        } catch (StackOverflowError error) {
            why = "Tika cannot read it: nested too deep";
        } catch (Exception | LinkageError error) {
            isCut = WriteLimitReachedException.isWriteLimitReached(error);
            why = isCut ? "" : "Tika cannot read it: " + cause(error);
        }
        if (why.isEmpty() && Arrays.asList(about.getValues(TikaCoreProperties.TIKA_PARSED_BY)).contains(NONE)) {
            why = "Tika finds no office document, but " + about.get(Metadata.CONTENT_TYPE);
        }
        if (end()) {
            answer(why.isEmpty() ? text.toString() : "", about.get(TikaCoreProperties.TITLE), isCut, why);
        }
    }

    private ParseContext context() {
        ParseContext context = new ParseContext();
        context.set(Parser.class, parser); // for documents inside documents
        return context;
    }

    private static String cause(Throwable error) {
        Throwable inner = error;
        while (inner.getCause() != null && inner.getCause() != inner) {
            inner = inner.getCause();
        }
        return inner.getClass().getSimpleName() + (inner.getMessage() == null ? "" : ": " + inner.getMessage());
    }

    private synchronized void begin() {
        cpuAtStart = process.getProcessCpuTime();
        wallAtStart = System.nanoTime();
        working = true;
    }

    /** Whether the document is still to be answered. */
    private synchronized boolean end() {
        boolean was = working;
        working = false;
        return was;
    }

    private void watch() {
        while (true) {
            try {
                Thread.sleep(TICK);
            } catch (InterruptedException never) {
                return;
            }
            look();
        }
    }

    private synchronized void look() {
        if (!working) {
            return;
        }
        if (System.nanoTime() - wallAtStart > wall) {
            Runtime.getRuntime().halt(1);
        }
        if (process.getProcessCpuTime() - cpuAtStart > cpu) {
            working = false;
            try {
                answer("", "", false, "timeout: over " + TimeUnit.NANOSECONDS.toSeconds(cpu) + " s of CPU time");
            } catch (IOException gone) {
                Runtime.getRuntime().halt(1);
            }
            Runtime.getRuntime().halt(0);
        }
    }

    private void answer(String text, String title, boolean isCut, String why) throws IOException {
        ByteArrayOutputStream message = new ByteArrayOutputStream();
        try (JsonGenerator json = new JsonFactory().createGenerator(message)) {
            json.writeStartObject();
            json.writeStringField("text", sound(text));
            json.writeStringField("title", sound(title == null ? "" : title));
            json.writeBooleanField("is_cut", isCut);
            json.writeStringField("why", sound(why));
            json.writeEndObject();
        }
        send(message.toByteArray());
    }

    /** A text without halves of surrogate pairs, which JSON cannot have. */
    private static String sound(String text) {
        return new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    }

    private void send(byte[] message) throws IOException {
        out.writeInt(message.length);
        out.write(message);
        out.flush();
    }
}
