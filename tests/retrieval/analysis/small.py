"""Small collections in many languages, each of the same six documents, with proper tokens given by hand.

The tokens are what a speaker would compare: base forms of the words of content, or the words of a language without
blanks. Query n is about document n.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Small:
    """Documents and queries, each with its tokens after a bar."""

    documents: str
    queries: str

    def read(self, name: str) -> list[tuple[str, list[str]]]:
        lines = [line.strip().split("|") for line in getattr(self, name).strip().splitlines()]
        return [(text.strip(), tokens.split()) for text, tokens in lines]


COLLECTIONS = {
    "german": Small(
        """Vergessene Passwörter setzt man auf der Anmeldeseite zurück. | vergessen passwort anmeldeseite
        Rechnungen sind innerhalb von vierzehn Tagen zu bezahlen. | rechnung vierzehn tag bezahlen
        Pakete werden in drei Werktagen zugestellt. | paket drei werktag zustellen
        Im Garten blühen die Pflaumenbäume im Frühling. | garten blühen pflaumenbaum frühling
        Die Bücherei hat bis acht Uhr geöffnet. | bücherei acht uhr öffnen
        Der Zug an die Küste fährt stündlich. | zug küste fahren stündlich""",
        """PASSWORT vergessen | passwort vergessen
        Rechnung bezahlen | rechnung bezahlen
        Zustellung der Paketes | zustellung paket
        Pflaumenbaeume im Garten | pflaumenbaum garten
        Buecherei | bücherei""",
    ),
    "french": Small(
        """On réinitialise les mots de passe oubliés sur la page d'accueil. | réinitialiser mot passe oublier accueil
        Les factures sont payées dans les quatorze jours. | facture payer quatorze jour
        L'envoi des colis prend trois jours. | envoi colis prendre trois jour
        Les pruniers du jardin fleurissent au printemps. | prunier jardin fleurir printemps
        La bibliothèque est ouverte jusqu'à huit heures. | bibliothèque ouvrir huit heure
        Le train de l'océan part chaque heure. | train océan partir heure""",
        """mot de passe oublié | mot passe oublier
        payer une facture | payer facture
        envoi d’un colis | envoi colis
        le PRUNIER | prunier
        bibliothe\u0300que | bibliothèque
        océan | océan""",
    ),
    "spanish": Small(
        """Las contraseñas olvidadas se cambian en la página de entrada. | contraseña olvidar cambiar página entrada
        Las facturas se pagan en catorce días. | factura pagar catorce día
        Los paquetes llegan en tres días. | paquete llegar tres día
        Los ciruelos del jardín florecen en primavera. | ciruelo jardín florecer primavera
        La biblioteca abre hasta las ocho. | biblioteca abrir ocho
        El tren de la costa sale cada hora. | tren costa salir hora""",
        """contraseña olvidada | contraseña olvidar
        pagar la factura | pagar factura
        paquete | paquete
        jardin con ciruelos | jardín ciruelo""",
    ),
    "turkish": Small(
        """Unutulan şifreler giriş sayfasında yenilenir. | unutmak şifre giriş sayfa yenilemek
        Faturalar on dört gün içinde ödenir. | fatura on dört gün ödemek
        Koliler üç iş gününde teslim edilir. | koli üç iş gün teslim
        Bahçedeki erik ağaçları ilkbaharda çiçek açar. | bahçe erik ağaç ilkbahar çiçek açmak
        Kütüphane akşam sekize kadar açıktır. | kütüphane akşam sekiz açık
        İstanbul'a giden trenin ışıkları uzaktan görünür. | istanbul gitmek tren ışık uzak görünmek""",
        """ŞİFRE | şifre
        fatura | fatura
        KOLİ teslimi | koli teslim
        erik ağacı | erik ağaç
        kütüphaneler | kütüphane
        IŞIK | ışık""",
    ),
    "russian": Small(
        """Забытый пароль меняют на странице входа. | забыть пароль менять страница вход
        Счета оплачивают в течение четырнадцати дней. | счёт оплачивать четырнадцать день
        Посылки доставляют за три дня. | посылка доставлять три день
        В саду весной цветут сливы и зелёные ёлки. | сад весна цвести слива зелёный ёлка
        Библиотека открыта до восьми часов. | библиотека открыть восемь час
        Поезд к морю ходит каждый час. | поезд море ходить час""",
        """забытые пароли | забыть пароль
        оплачивать счета | оплачивать счёт
        ПОСЫЛКА | посылка
        елка в саду | ёлка сад
        библиотеки | библиотека""",
    ),
    "greek": Small(
        """Οι ξεχασμένοι κωδικοί αλλάζουν στη σελίδα εισόδου. | ξεχνώ κωδικός αλλάζω σελίδα είσοδος
        Τα τιμολόγια πληρώνονται σε δεκατέσσερις ημέρες. | τιμολόγιο πληρώνω δεκατέσσερις ημέρα
        Τα δέματα φτάνουν σε τρεις ημέρες. | δέμα φτάνω τρεις ημέρα
        Οι δαμασκηνιές του κήπου ανθίζουν την άνοιξη. | δαμασκηνιά κήπος ανθίζω άνοιξη
        Η βιβλιοθήκη είναι ανοιχτή ως τις οκτώ. | βιβλιοθήκη ανοιχτός οκτώ
        Το τρένο για τη θάλασσα φεύγει κάθε ώρα. | τρένο θάλασσα φεύγω ώρα""",
        """ΚΩΔΙΚΟΣ | κωδικός
        ΤΙΜΟΛΟΓΙΑ | τιμολόγιο
        δέμα | δέμα
        κήπος | κήπος
        ΒΙΒΛΙΟΘΗΚΗ | βιβλιοθήκη""",
    ),
    "arabic": Small(
        """تُغيَّر كلمات المرور المنسيّة من صفحة الدخول. | تغيير كلمة مرور نسي صفحة دخول
        تُدفع الفواتير خلال أربعة عشر يوماً. | دفع فاتورة أربعة عشر يوم
        يصل الطرد خلال ثلاثة أيام. | وصل طرد ثلاثة يوم
        تزهر أشجار البرقوق في الحديقة في الربيع. | زهر شجرة برقوق حديقة ربيع
        المكتبة مفتوحة حتى الثامنة. | مكتبة فتح ثامن
        يغادر القطار إلى البحر كل ساعة. | غادر قطار بحر ساعة""",
        """كلمة المرور | كلمة مرور
        دفع الفواتير | دفع فاتورة
        طرد | طرد
        اشجار الحديقه | شجرة حديقة
        مكتبه | مكتبة
        القِطَار | قطار""",
    ),
    "persian": Small(
        """گذرواژه‌های فراموش‌شده در صفحهٔ ورود عوض می‌شوند. | گذرواژه فراموش صفحه ورود عوض
        صورت‌حساب‌ها ظرف چهارده روز پرداخت می‌شوند. | صورت حساب چهارده روز پرداخت
        بسته‌ها در سه روز می‌رسند. | بسته سه روز رسیدن
        درختان آلو در باغ بهار شکوفه می‌دهند. | درخت آلو باغ بهار شکوفه
        کتابخانه تا ساعت هشت باز است. | کتابخانه ساعت هشت باز
        قطار دریا هر ساعت حرکت می‌کند. | قطار دریا ساعت حرکت""",
        """گذرواژه فراموش | گذرواژه فراموش
        پرداخت صورت حساب | پرداخت صورت حساب
        بسته | بسته
        درخت آلو | درخت آلو
        كتابخانه | کتابخانه
        قطار دريا | قطار دریا""",
    ),
    "hindi": Small(
        """भूला हुआ पासवर्ड लॉगिन पृष्ठ पर बदला जाता है। | भूलना पासवर्ड लॉगिन पृष्ठ बदलना
        बिल चौदह दिनों में चुकाए जाते हैं। | बिल चौदह दिन चुकाना
        पार्सल तीन दिनों में पहुँचते हैं। | पार्सल तीन दिन पहुँचना
        बग़ीचे में आलूबुखारे के पेड़ वसंत में खिलते हैं। | बग़ीचा आलूबुखारा पेड़ वसंत खिलना
        हिन्दी पुस्तकालय आठ बजे तक खुला है। | हिन्दी पुस्तकालय आठ खुला
        समुद्र की रेलगाड़ी हर घंटे चलती है। | समुद्र रेलगाड़ी घंटा चलना""",
        """पासवर्ड भूल | पासवर्ड भूलना
        बिल चुकाना | बिल चुकाना
        पार्सल कब पहुंचेगा | पार्सल पहुँचना
        बगीचे के पेड | बग़ीचा पेड़
        हिंदी | हिन्दी
        रेलगाड़ियों | रेलगाड़ी""",
    ),
    "vietnamese": Small(
        """Mật khẩu bị quên được đổi ở trang đăng nhập. | mật khẩu bị quên được đổi ở trang đăng nhập
        Hóa đơn phải trả trong mười bốn ngày. | hóa đơn phải trả trong mười bốn ngày
        Bưu kiện đến sau ba ngày. | bưu kiện đến sau ba ngày
        Cây mận trong vườn nở hoa vào mùa xuân. | cây mận trong vườn nở hoa vào mùa xuân
        Thư viện mở cửa đến tám giờ. | thư viện mở cửa đến tám giờ
        Tàu ra biển chạy mỗi giờ. | tàu ra biển chạy mỗi giờ""",
        """ma\u0323\u0302t kha\u0302\u0309u | mật khẩu
        TRẢ HÓA ĐƠN | trả hóa đơn
        bưu kiện | bưu kiện
        cây mận | cây mận
        thu\u031b vie\u0323\u0302n | thư viện""",
    ),
    "chinese": Small(
        """忘记密码时可以在登录页面重置。 | 忘记 密码 时 可以 在 登录 页面 重置
        发票须在十四天内支付。 | 发票 须 在 十四 天 内 支付
        包裹三个工作日内送达。 | 包裹 三 个 工作日 内 送达
        花园里的李子树在春天开花。 | 花园 里 的 李子树 在 春天 开花
        图书馆开放到晚上八点。 | 图书馆 开放 到 晚上 八点
        去海边的火车每小时一班。 | 去 海边 的 火车 每 小时 一 班""",
        """重置密码 | 重置 密码
        支付发票 | 支付 发票
        包裹送达 | 包裹 送达
        李子树开花 | 李子树 开花
        图书馆 | 图书馆
        火车 | 火车""",
    ),
    "japanese": Small(
        """忘れたパスワードはログイン画面で再設定できます。 | 忘れる パスワード ログイン 画面 再設定 できる
        請求書は十四日以内に支払います。 | 請求書 十四日 以内 支払う
        荷物は三営業日で届きます。 | 荷物 三 営業日 届く
        庭のスモモの木は春に咲きます。 | 庭 スモモ 木 春 咲く
        図書館は夜八時まで開いています。 | 図書館 夜 八時 開く
        海へ行く電車は毎時出ます。 | 海 行く 電車 毎時 出る""",
        """ﾊﾟｽﾜｰﾄﾞの再設定 | パスワード 再設定
        請求書の支払 | 請求書 支払う
        荷物が届く | 荷物 届く
        スモモの木 | スモモ 木
        図書館 | 図書館""",
    ),
    "korean": Small(
        """잊은 비밀번호는 로그인 화면에서 바꿉니다. | 잊다 비밀번호 로그인 화면 바꾸다
        청구서는 십사 일 안에 지불합니다. | 청구서 십사 일 안 지불
        소포는 사흘 안에 도착합니다. | 소포 사흘 안 도착
        정원의 자두나무는 봄에 꽃이 핍니다. | 정원 자두나무 봄 꽃 피다
        도서관은 저녁 여덟 시까지 엽니다. | 도서관 저녁 여덟 시 열다
        바다로 가는 기차는 매시간 떠납니다. | 바다 가다 기차 매시간 떠나다""",
        """비밀번호를 잊다 | 비밀번호 잊다
        청구서 지불 | 청구서 지불
        소포 도착 | 소포 도착
        자두나무 | 자두나무
        도서관에서 | 도서관
        기차 | 기차""",
    ),
    "thai": Small(
        """รหัสผ่านที่ลืมเปลี่ยนได้ที่หน้าเข้าสู่ระบบ | รหัสผ่าน ลืม เปลี่ยน หน้า เข้าสู่ระบบ
        ใบแจ้งหนี้ต้องชำระภายในสิบสี่วัน | ใบแจ้งหนี้ ต้อง ชำระ ภายใน สิบสี่ วัน
        พัสดุมาถึงภายในสามวัน | พัสดุ มาถึง ภายใน สาม วัน
        ต้นพลัมในสวนออกดอกในฤดูใบไม้ผลิ | ต้น พลัม สวน ออกดอก ฤดูใบไม้ผลิ
        ห้องสมุดเปิดถึงสองทุ่ม | ห้องสมุด เปิด ถึง สองทุ่ม
        รถไฟไปทะเลออกทุกชั่วโมง | รถไฟ ไป ทะเล ออก ทุก ชั่วโมง""",
        """ลืมรหัสผ่าน | ลืม รหัสผ่าน
        ชำระใบแจ้งหนี้ | ชำระ ใบแจ้งหนี้
        พัสดุ | พัสดุ
        ต้นพลัม | ต้น พลัม
        ห้องสมุด | ห้องสมุด
        รถไฟ | รถไฟ""",
    ),
    "finnish": Small(
        """Unohtuneet salasanat vaihdetaan kirjautumissivulla. | unohtua salasana vaihtaa kirjautumissivu
        Laskut on maksettava neljäntoista päivän kuluessa. | lasku maksaa neljätoista päivä
        Lähetit toimittavat paketit kolmessa arkipäivässä. | lähetti toimittaa paketti kolme arkipäivä
        Puutarhassa luumupuut kukkivat keväällä. | puutarha luumupuu kukkia kevät
        Kirjasto lainaa lukijoille kirjoja kahdeksaan asti. | kirjasto lainata lukija kirja kahdeksan
        Junat rannikolle lähtevät tunnin välein. | juna rannikko lähteä tunti väli""",
        """unohtunut salasana | unohtua salasana
        laskun maksaminen | lasku maksaa
        paketin toimitus | paketti
        luumupuun kukinta puutarhoissa | luumupuu puutarha
        kirjan laina | kirja
        juna rannikolla | juna rannikko""",
    ),
    "other": Small(  # Georgian
        """დავიწყებული პაროლები შესვლის გვერდზე იცვლება. | დავიწყება პაროლი შესვლა გვერდი ცვლა
        ანგარიშები თოთხმეტ დღეში უნდა გადაიხადოთ. | ანგარიში თოთხმეტი დღე გადახდა
        კურიერები ამანათებს სამ დღეში აწვდიან. | კურიერი ამანათი სამი დღე მიწოდება
        ბაღში გაზაფხულზე ქლიავის ხეები ყვავის. | ბაღი გაზაფხული ქლიავი ხე ყვავის
        ბიბლიოთეკა მკითხველებს რვა საათამდე წიგნებს აძლევს. | ბიბლიოთეკა მკითხველი რვა საათი წიგნი მიცემა
        მატარებლები სანაპიროსკენ ყოველ საათში გადის. | მატარებელი სანაპირო ყოველი საათი გასვლა""",
        """პაროლის დავიწყება | პაროლი დავიწყება
        ანგარიშის გადახდა | ანგარიში გადახდა
        ამანათი კურიერისგან | ამანათი კურიერი
        ქლიავი ბაღების | ქლიავი ბაღი
        წიგნი ბიბლიოთეკაში | წიგნი ბიბლიოთეკა
        მატარებელი სანაპიროზე | მატარებელი სანაპირო""",
    ),
}
